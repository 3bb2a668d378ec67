"""The demo's outside world: real SMTP and HTTP, files at the end."""

import json
import smtplib
import socket
import subprocess
import sys
import urllib.request
from email.message import EmailMessage

import pytest

from tests.processes import ROOT
from tests.waiting import wait_until

pytestmark = pytest.mark.once


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def outside(tmp_path):
    smtp, http = free_port(), free_port()
    ports = ["--smtp", str(smtp), "--http", str(http)]
    process = subprocess.Popen(
        [sys.executable, "-m", "project.receive", *ports, "--folder", str(tmp_path)],
        cwd=ROOT,
    )
    try:
        wait_until(lambda: answers(smtp) and answers(http), within=20, what="the ports")
        yield smtp, http, tmp_path
    finally:
        process.terminate()
        assert process.wait(10) == 0


def test_an_email_becomes_a_file_and_nobody_is_refused(outside):
    smtp, _, folder = outside
    message = EmailMessage()
    message["Subject"], message["To"] = "Grüße", "anna@acme.example"
    message.set_content("text")
    with smtplib.SMTP("127.0.0.1", smtp, timeout=10) as server:
        server.send_message(message, from_addr="a@b.example")
        with pytest.raises(smtplib.SMTPRecipientsRefused):
            server.sendmail("a@b.example", ["nobody@acme.example"], "x")
    (file,) = (folder / "mail").iterdir()
    assert file.name == "0001-anna@acme.example.eml"
    assert b"text" in file.read_bytes()


def test_a_recipient_cannot_choose_another_folder(outside):
    smtp, _, folder = outside
    with smtplib.SMTP("127.0.0.1", smtp, timeout=10) as server:
        server.sendmail("a@b.example", ['"../../etc/x"@acme.example'], "x")
    (file,) = (folder / "mail").iterdir()
    assert "/" not in file.name


def test_a_report_becomes_a_line(outside):
    _, http, folder = outside
    for number in (1, 2):
        body = json.dumps({"n": number}, indent=1).encode()
        with urllib.request.urlopen(
            f"http://127.0.0.1:{http}/heartbeat", data=body, timeout=10
        ) as answer:
            assert answer.status == 204
    lines = (folder / "heartbeats.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"n": 1}, {"n": 2}]
