"""The queue's pages: an attempt's, items, settings, pauses. Every address is named here."""

from django.urls import path

from workqueue.views import again, attempt, items, pauses, settings, transcript

urlpatterns = [
    path("run/<uuid:claim_id>/", attempt.attempt, name="run"),
    path("run/<uuid:claim_id>/lines/", transcript.lines, name="run_lines"),
    path("run/<uuid:claim_id>/transcript/", transcript.download, name="run_transcript"),
    path("run/<uuid:claim_id>/retry/", again.again, name="run_retry"),
    path("items/", items.items, name="items"),
    path("items/act/", items.act, name="items_act"),
    path("items/<int:item_id>/", items.item, name="item"),
    path("settings/", settings.settings, name="settings"),
    path("settings/<slug:slug>/", settings.setting, name="setting"),
    path(
        "settings/<slug:slug>/restore/<int:version>/",
        settings.restore,
        name="setting_restore",
    ),
    path("pauses/", pauses.pauses_list, name="pauses"),
    path("pauses/pause/", pauses.pause, name="pause"),
    path("pauses/<int:pause_id>/resume/", pauses.resume, name="resume"),
]
