# `make help` lists the targets.
SHELL := /bin/bash
UV ?= uv
PRODUCTION = DJANGO_ENV=production DATABASE_URL=postgresql://a:b@localhost/c BASE_URL=https://millrace.example.com \
	EMAIL_URL=smtp://localhost SECRET_KEY=for-this-check-only-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGH

.PHONY: help setup run worker test test-pg race lint types imports fmt migrations check docs screenshots soak chaos chaos-jobs
help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup:  ## install what is needed
	$(UV) sync

run:  ## run everything, with three demo tenants
	$(UV) run manage.py start --demo

worker:  ## run one worker more
	$(UV) run manage.py runworker

test:  ## all tests, on SQLite and on PostgreSQL
	$(UV) run pytest

test-pg:  ## all tests, on PostgreSQL only
	$(UV) run pytest --db postgresql

race:  ## tests of races, twenty times
	for i in $$(seq 20); do $(UV) run pytest -q -m race || exit 1; done

lint:  ## rules of style
	$(UV) run ruff check
	$(UV) run ruff format --check

types:  ## mypy, strict
	$(UV) run mypy

imports:  ## directions of imports
	$(UV) run lint-imports

fmt:  ## correct what can be corrected
	$(UV) run ruff check --fix
	$(UV) run ruff format

migrations:  ## make the migrations that models ask for
	$(UV) run manage.py makemigrations

check: lint imports types  ## everything that has to hold before a change is merged
	$(PRODUCTION) $(UV) run manage.py check --deploy --fail-level WARNING
	$(UV) run manage.py makemigrations --check --dry-run
	$(UV) run pytest

docs:  ## write docs/settings.md from the registry
	$(UV) run manage.py showconfig --markdown > docs/settings.md

screenshots:  ## take the pictures of docs/screens.md from a demo of their own
	$(UV) run python -m tests.screenshots

soak:  ## the full size of load and time, by hand: make soak MINUTES=60
	MILLRACE_SOAK_MINUTES=$(or $(MINUTES),30) $(UV) run pytest --db postgresql -m soak tests

chaos:  ## kill workers and masters at random, by hand: make chaos KILLS=500
	MILLRACE_KILLS=$(or $(KILLS),50) MILLRACE_OUTAGE=$(or $(OUTAGE),6) \
		$(UV) run pytest -q --db $(or $(DB),both) tests/races/test_chaos.py

chaos-jobs:  ## the same with job workers, by hand: make chaos-jobs KILLS=200
	MILLRACE_JOB_KILLS=$(or $(KILLS),50) MILLRACE_JOB_STOPS=$(or $(STOPS),10) MILLRACE_JOB_OUTAGE=$(or $(OUTAGE),60) \
		$(UV) run pytest -q --db postgresql tests/races/test_chaos_jobs.py
