"""forms: what an operator is asked before a cadence is changed or a handler run.

They translate and check words; the verbs they lead to stand in override.py.
"""

from typing import Any

from django import forms

from scheduler import cadence, override
from scheduler.exceptions import InvalidCadence
from workqueue.registry import Handler

LONGEST_REASON = 500  # characters


class Reasoned(forms.Form):
    """Every change says why; the Changes page shows it for ever."""

    why = forms.CharField(
        label="Why",
        max_length=LONGEST_REASON,
        widget=forms.TextInput(attrs={"class": "wide", "autocomplete": "off"}),
        error_messages={
            "required": "Say why: the next operator reads it.",
            "max_length": f"That is too long. Enter at most {LONGEST_REASON} characters.",
        },
    )


class CadenceForm(Reasoned):
    """Another cadence, or none to go back to the timetable's own."""

    field_order = ("cadence", "why")
    cadence = forms.CharField(
        label="Cadence",
        required=False,
        max_length=cadence.LONGEST_TEXT,
        widget=forms.TextInput(
            attrs={
                "class": "wide mr-code",
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
    )

    def __init__(self, *args: Any, handler: Handler, **kwargs: Any) -> None:
        """`handler`: the row whose own cadence an empty field stands for."""
        super().__init__(*args, **kwargs)
        self.handler = handler

    def clean_cadence(self) -> str:
        """The text as the scheduler takes it; "" is the timetable's own."""
        text = " ".join(str(self.cleaned_data["cadence"]).split())
        if not text or text == self.handler.cadence:
            return ""
        try:
            override.check(text, row=self.handler)
        except InvalidCadence as problem:
            raise forms.ValidationError(str(problem)) from problem
        return text
