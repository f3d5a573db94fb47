"""The addresses of the pages."""

from django.urls import path, register_converter

from dashboard.converters import CommandConverter, ExportConverter, RunCodeConverter
from dashboard.views import (
    arena,
    attacks,
    audit,
    docs,
    evidence,
    gallery,
    plans,
    privacy,
    run,
    share,
    start,
    tour,
)

register_converter(RunCodeConverter, "code")
register_converter(CommandConverter, "command")
register_converter(ExportConverter, "export")

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
    path("runs/<code:code>/audit/verify/", evidence.verify, name="verify"),
    path("runs/<code:code>/receipt.json", evidence.receipt, name="receipt"),
    path("runs/<code:code>/bundle.zip", evidence.bundle, name="bundle"),
    path("runs/<code:code>/export.ndjson", evidence.export, name="run_export"),
    path("runs/<code:code>/attacks/<uuid:attack_id>/", attacks.verdict, name="attack"),
    path(
        "runs/<code:code>/attacks/<uuid:attack_id>/unguarded/",
        attacks.without_guard,
        name="unguarded",
    ),
    path("runs/<code:code>/attacks/<uuid:attack_id>/curl/", share.curl, name="curl"),
    path("runs/<code:code>/attacks/<uuid:attack_id>/vary/", share.vary, name="vary"),
    path("runs/<code:code>/attacks/<uuid:attack_id>/report.md", share.report, name="report"),
    path("runs/<code:code>/attacks/<slug:name>/", attacks.fire, name="fire"),
    path("runs/<code:code>/plans/<slug:name>/", plans.make, name="plan"),
    path("runs/<code:code>/plans/<uuid:plan_id>/take-back/", plans.take_back, name="take_back"),
    path("runs/<code:code>/again/", start.again, name="again"),
    path("runs/<code:code>/<command:name>/", run.command, name="command"),
    path("attack/", arena.home, name="arena"),
    path("attack/gallery/", gallery.home, name="gallery"),
    path("attack/board/", arena.board, name="arena_board"),
    path("attack/gallery/news/", gallery.latest, name="gallery_news"),
    path("attack/gallery/<slug:name>/", gallery.fire, name="gallery_fire"),
    path("attack/gallery/<slug:name>/<uuid:attack_id>/", gallery.shot, name="gallery_shot"),
    path(
        "attack/gallery/<slug:name>/<uuid:attack_id>/unguarded/",
        gallery.without_guard,
        name="gallery_unguarded",
    ),
    path(
        "attack/gallery/<slug:name>/<uuid:attack_id>/report.md",
        gallery.report,
        name="gallery_report",
    ),
    path("attack/check/", arena.check, name="arena_check"),
    path("attack/propose/", arena.propose, name="arena_propose"),
    path("attack/start/", arena.start, name="arena_start"),
    path("attack/poison/", arena.poison, name="arena_poison"),
    path("attack/ready/", arena.ready, name="arena_ready"),
    path("attack/name/", arena.rename, name="arena_name"),
    path("attack/bundles/<uuid:attack_id>/", arena.bundle, name="arena_bundle"),
    path("audit/", audit.everything, name="audit"),
    path("audit/<slug:name>/", audit.everything, name="log"),
    path("audit/<slug:name>/bundle.zip", evidence.log_bundle, name="log_bundle"),
    path("audit/<slug:name>/export.<export:form>", audit.export, name="log_export"),
    path("verify.py", evidence.verifier, name="verifier"),
    path("privacy/<code:code>/", privacy.inventory, name="privacy"),
    path("privacy/<code:code>/erased/", privacy.erased, name="erased"),
    path("privacy/certificates/<code:code>/", privacy.certificate, name="certificate"),
    path(
        "privacy/certificates/<code:code>.json", privacy.certificate_json, name="certificate_json"
    ),
    path("tour/<int:number>/", tour.stop, name="tour"),
    path("policy/", docs.policy, name="policy"),
    path("docs/", docs.index, name="docs"),
    path("docs/rules/<slug:code>/", docs.rule, name="rule"),
    path("docs/threat-model/", docs.threat_model, name="threat_model"),
]
