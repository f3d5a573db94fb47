"""The addresses of the pages."""

from django.urls import path, register_converter

from dashboard.converters import CommandConverter, RunCodeConverter
from dashboard.views import attacks, audit, docs, privacy, run, start

register_converter(RunCodeConverter, "code")
register_converter(CommandConverter, "command")

urlpatterns = [
    path("", start.home, name="home"),
    path("theme/", start.theme, name="theme"),
    path("runs/", start.listing, name="runs"),
    path("runs/new/", start.new, name="new"),
    path("runs/demo/", start.run_demo, name="demo"),
    path("runs/<code:code>/", run.live, name="run"),
    path("runs/<code:code>/events", run.news, name="news"),
    path("runs/<code:code>/events/<int:number>/", run.event, name="event"),
    path("runs/<code:code>/events/<int:number>/bytes/", audit.event_bytes, name="event_bytes"),
    path("runs/<code:code>/steps/<int:number>/", run.step, name="step"),
    path("runs/<code:code>/calls/", run.calls, name="calls"),
    path("runs/<code:code>/audit/", audit.of_run, name="run_audit"),
    path("runs/<code:code>/audit/verify/", audit.verify, name="verify"),
    path("runs/<code:code>/attacks/<uuid:attack_id>/", attacks.verdict, name="attack"),
    path("runs/<code:code>/attacks/<slug:name>/", attacks.fire, name="fire"),
    path("runs/<code:code>/<command:name>/", run.command, name="command"),
    path("audit/", audit.everything, name="audit"),
    path("privacy/<code:code>/", privacy.inventory, name="privacy"),
    path("privacy/certificates/<code:code>/", privacy.certificate, name="certificate"),
    path(
        "privacy/certificates/<code:code>.json", privacy.certificate_json, name="certificate_json"
    ),
    path("policy/", docs.policy, name="policy"),
    path("docs/", docs.index, name="docs"),
    path("docs/rules/<slug:code>/", docs.rule, name="rule"),
    path("docs/threat-model/", docs.threat_model, name="threat_model"),
]
