"""views: the page on which a reader says how he wants to see the others."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme

from audit import page
from project import reader


class PreferencesForm(forms.Form):
    """How times are told."""

    zone = forms.CharField(
        label="Time zone",
        max_length=64,
        widget=forms.TextInput(
            attrs={"class": "wide", "list": "zones", "autocomplete": "off"}
        ),
        error_messages={
            "required": "Enter a zone, such as Europe/Berlin or UTC.",
            "max_length": "That is no time zone. Enter one such as Europe/Berlin or UTC.",
        },
    )
    way = forms.ChoiceField(
        label="Times",
        widget=forms.RadioSelect,
        choices=(
            (reader.AGO, "Relative: 7 s ago; from a day on, the day and the time"),
            (reader.EXACT, "Exact, in that zone"),
            (reader.UTC, "Exact, in UTC"),
        ),
        error_messages={"invalid_choice": "Choose one of the three."},
    )

    def clean_zone(self) -> str:
        """A name of the zone database, however it is spelt."""
        asked = str(self.cleaned_data["zone"])
        found = {name.lower(): name for name in reader.zones()}.get(asked.lower(), "")
        if not reader.known(found):
            raise forms.ValidationError(
                f"“{asked}” is no time zone. Enter one such as Europe/Berlin or UTC."
            )
        return found


@page.needs(methods=page.ASKS)
def preferences(request: HttpRequest) -> HttpResponse:
    """Preferences: kept in this browser, for this browser."""
    now = {"zone": reader.zone(request), "way": reader.way(request)}
    form = PreferencesForm(request.POST or None, initial=now)
    back = request.POST.get("next") or request.GET.get("next", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        back = ""
    if request.method == "POST" and form.is_valid():
        messages.success(request, "Kept in this browser.")
        response = redirect(back or request.path)
        reader.keep(
            response, zone=form.cleaned_data["zone"], way=form.cleaned_data["way"]
        )
        return response
    return page.render(
        request,
        "admin/preferences.html",
        title="Preferences",
        lead="How pages look in this browser. Nobody else sees them differently for it.",
        form=form,
        zones=reader.zones(),
        back=back,
        quiet=True,
        status=200 if request.method != "POST" else 422,
    )


urlpatterns = [path("preferences/", preferences, name="preferences")]
