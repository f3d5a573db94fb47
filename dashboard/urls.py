"""The addresses of the pages."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from dashboard.arena import views as arena_views
from dashboard.attacks import plan_views, share
from dashboard.attacks import views as attacks_views
from dashboard.audit import evidence
from dashboard.audit import views as audit_views
from dashboard.docs import views as docs_views
from dashboard.gallery import views as gallery_views
from dashboard.privacy import views as privacy_views
from dashboard.runs import views as runs_views
from dashboard.start import views as start_views
from dashboard.suppliers import erasing as supplier_erasing
from dashboard.suppliers import views as supplier_views
from dashboard.tour import views as tour_views


class RunCodeConverter(StringConverter):
    """A short code such as 7F3K-02, in either case."""

    regex = "[0-9A-Za-z]{4}-[0-9]{2}"

    def to_python(self, value: str) -> str:
        return value.upper()


class CommandConverter(StringConverter):
    """A command for a run."""

    regex = "|".join((*runs_views.COMMANDS, *runs_views.DECISIONS))


class ExportConverter(StringConverter):
    """The format of an export."""

    regex = "ndjson|csv"


register_converter(RunCodeConverter, "code")
register_converter(CommandConverter, "command")
register_converter(ExportConverter, "export")

urlpatterns = [
    path("", start_views.home, name="home"),
    path("theme/", start_views.theme, name="theme"),
    path("runs/", start_views.listing, name="runs"),
    path("runs/new/", start_views.new, name="new"),
    path("runs/demo/", runs_views.demo, name="demo"),
    path("runs/plain/", start_views.run_plain, name="plain"),
    path("runs/<code:code>/", runs_views.live, name="run"),
    path("runs/<code:code>/events", runs_views.news, name="news"),
    path("runs/<code:code>/events/<int:number>/", runs_views.event, name="event"),
    path(
        "runs/<code:code>/events/<int:number>/bytes/", audit_views.event_bytes, name="event_bytes"
    ),
    path("runs/<code:code>/steps/<int:number>/", runs_views.step, name="step"),
    path("runs/<code:code>/calls/", runs_views.calls, name="calls"),
    path("runs/<code:code>/authenticate/", runs_views.authenticate, name="authenticate"),
    path("runs/<code:code>/crops/<int:place>.png", runs_views.crop, name="crop"),
    path("runs/<code:code>/audit/", audit_views.of_run, name="run_audit"),
    path("runs/<code:code>/audit/verify/", evidence.verify, name="verify"),
    path("runs/<code:code>/receipt.json", evidence.receipt, name="receipt"),
    path("runs/<code:code>/bundle.zip", evidence.bundle, name="bundle"),
    path("runs/<code:code>/export.ndjson", evidence.export, name="run_export"),
    path("runs/<code:code>/attacks/<uuid:attack_id>/", attacks_views.verdict, name="attack"),
    path(
        "runs/<code:code>/attacks/<uuid:attack_id>/unguarded/",
        attacks_views.without_guard,
        name="unguarded",
    ),
    path("runs/<code:code>/attacks/<uuid:attack_id>/curl/", share.curl, name="curl"),
    path("runs/<code:code>/attacks/<uuid:attack_id>/vary/", share.vary, name="vary"),
    path("runs/<code:code>/attacks/<uuid:attack_id>/report.md", share.report, name="report"),
    path("runs/<code:code>/attacks/<slug:name>/", attacks_views.fire, name="fire"),
    path("runs/<code:code>/plans/<slug:name>/", plan_views.make, name="plan"),
    path(
        "runs/<code:code>/plans/<uuid:plan_id>/take-back/", plan_views.take_back, name="take_back"
    ),
    path("runs/<code:code>/again/", start_views.again, name="again"),
    path("runs/<code:code>/<command:name>/", runs_views.command, name="command"),
    path("attack/", arena_views.home, name="arena"),
    path("attack/gallery/", gallery_views.home, name="gallery"),
    path("attack/board/", arena_views.board, name="arena_board"),
    path("attack/gallery/news/", gallery_views.latest, name="gallery_news"),
    path("attack/gallery/<slug:name>/", gallery_views.fire, name="gallery_fire"),
    path("attack/gallery/<slug:name>/<uuid:attack_id>/", gallery_views.shot, name="gallery_shot"),
    path(
        "attack/gallery/<slug:name>/<uuid:attack_id>/unguarded/",
        gallery_views.without_guard,
        name="gallery_unguarded",
    ),
    path(
        "attack/gallery/<slug:name>/<uuid:attack_id>/report.md",
        gallery_views.report,
        name="gallery_report",
    ),
    path("attack/check/", arena_views.check, name="arena_check"),
    path("attack/propose/", arena_views.propose, name="arena_propose"),
    path("attack/start/", arena_views.start, name="arena_start"),
    path("attack/poison/", arena_views.poison, name="arena_poison"),
    path("attack/ready/", arena_views.ready, name="arena_ready"),
    path("attack/name/", arena_views.rename, name="arena_name"),
    path("attack/bundles/<uuid:attack_id>/", arena_views.bundle, name="arena_bundle"),
    path("audit/", audit_views.everything, name="audit"),
    path("audit/<slug:name>/", audit_views.everything, name="log"),
    path("audit/<slug:name>/bundle.zip", evidence.log_bundle, name="log_bundle"),
    path("audit/<slug:name>/export.<export:form>", audit_views.export, name="log_export"),
    path("verify.py", evidence.verifier, name="verifier"),
    path("privacy/<code:code>/", privacy_views.inventory, name="privacy"),
    path("privacy/<code:code>/erased/", privacy_views.erased, name="erased"),
    path("privacy/certificates/<code:code>/", privacy_views.certificate, name="certificate"),
    path(
        "privacy/certificates/<code:code>.json",
        privacy_views.certificate_json,
        name="certificate_json",
    ),
    path("suppliers/", supplier_views.listing, name="suppliers"),
    path("suppliers/import/", supplier_views.import_file, name="supplier_import"),
    path("suppliers/export.csv", supplier_views.export, name="supplier_export"),
    path("suppliers/<uuid:supplier_id>/", supplier_views.one, name="supplier"),
    path(
        "suppliers/<uuid:supplier_id>/block/",
        supplier_views.block,
        {"event": "block"},
        name="supplier_block",
    ),
    path(
        "suppliers/<uuid:supplier_id>/unblock/",
        supplier_views.block,
        {"event": "unblock"},
        name="supplier_unblock",
    ),
    path("suppliers/<uuid:supplier_id>/erase/", supplier_erasing.erase, name="supplier_erase"),
    path(
        "suppliers/<uuid:supplier_id>/certificate/",
        supplier_erasing.certificate,
        name="supplier_certificate",
    ),
    path(
        "suppliers/<uuid:supplier_id>/certificate.json",
        supplier_erasing.certificate_json,
        name="supplier_certificate_json",
    ),
    path("tour/<int:number>/", tour_views.stop, name="tour"),
    path("policy/", docs_views.policy, name="policy"),
    path("docs/", docs_views.index, name="docs"),
    path("docs/rules/<slug:code>/", docs_views.rule, name="rule"),
    path("docs/threat-model/", docs_views.threat_model, name="threat_model"),
]
