"""The addresses of the pages."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter
from django.views.generic import RedirectView

from dashboard.agents import connect as connect_views
from dashboard.agents import views as agent_views
from dashboard.arena import views as arena_views
from dashboard.attacks import views as attacks_views
from dashboard.audit import evidence
from dashboard.audit import views as audit_views
from dashboard.docs import views as docs_views
from dashboard.gallery import views as gallery_views
from dashboard.inbox import views as inbox_views
from dashboard.ops import views as ops_views
from dashboard.privacy import suppliers as privacy_suppliers
from dashboard.privacy import views as privacy_views
from dashboard.proof import views as proof_views
from dashboard.runs import proving
from dashboard.runs import views as runs_views
from dashboard.sharing import views as sharing_views
from dashboard.start import calls as start_calls
from dashboard.start import listing as start_listing
from dashboard.start import views as start_views
from dashboard.suppliers import views as supplier_views
from dashboard.tour import views as tour_views
from dashboard.web.pages import page


class RunCodeConverter(StringConverter):
    """A short code such as 7F3K-02, in either case."""

    regex = "[0-9A-Za-z]{4}-[0-9]{2}"

    def to_python(self, value: str) -> str:
        return value.upper()


WORDS = {  # that an address may have in one place
    "command": (*runs_views.COMMANDS, *runs_views.DECISIONS),
    "agent_command": agent_views.COMMANDS,
    "export": ("ndjson", "csv"),
}
register_converter(RunCodeConverter, "code")
for name, words in WORDS.items():
    register_converter(type(name, (StringConverter,), {"regex": "|".join(words)}), name)

RUN = "runs/<code:code>/"
ATTACK = f"{RUN}attacks/<uuid:attack_id>/"
SHOT = "attack/gallery/<slug:name>/<uuid:attack_id>/"
CERTIFICATE = "privacy/certificates/<code:code>"
AGENT = "agents/<slug:name>/"
CONNECT = "agents/connect/"
LINK = "l/<uuid:link_id>/"
SUPPLIER = "suppliers/<uuid:supplier_id>/"
WITH_RUNS = f"privacy/{SUPPLIER}"

urlpatterns = [
    path("", start_views.home, name="home"),
    path("theme/", start_views.theme, name="theme"),
    path("runs/", start_views.listing, name="runs"),
    path("runs.csv", start_listing.csv_file, name="runs_csv"),
    path("runs/calls/", start_calls.folded, name="calls_folded"),
    path("runs/calls/<slug:agent>/<str:hour>/", start_calls.opened, name="calls_of_hour"),
    path("runs/new/", start_views.new, name="new"),
    path("runs/demo/", runs_views.demo, name="demo"),
    path("runs/plain/", start_views.run_plain, name="plain"),
    path(RUN, runs_views.live, name="run"),
    path(f"{RUN}events", runs_views.news, name="news"),
    path(f"{RUN}events/<int:number>/", runs_views.event, name="event"),
    path(f"{RUN}events/<int:number>/bytes/", audit_views.event_bytes, name="event_bytes"),
    path(f"{RUN}steps/<int:number>/", runs_views.step, name="step"),
    path(f"{RUN}calls/", runs_views.calls, name="calls"),
    path(f"{RUN}authenticate/", runs_views.authenticate, name="authenticate"),
    path(f"{RUN}pages/<int:number>.png", runs_views.sheet, name="sheet"),
    path(f"{RUN}crops/<int:place>.png", runs_views.crop, name="crop"),
    path(f"{RUN}audit/", audit_views.of_run, name="run_audit"),
    path(f"{RUN}audit/verify/", proving.verify, name="verify"),
    path(f"{RUN}report/", proving.report, name="report_page"),
    path(f"{RUN}receipt.json", evidence.receipt, name="receipt"),
    path(f"{RUN}bundle.zip", evidence.bundle, name="bundle"),
    path(f"{RUN}export.ndjson", evidence.export, name="run_export"),
    path(ATTACK, attacks_views.verdict, name="attack"),
    path(f"{ATTACK}unguarded/", attacks_views.without_guard, name="unguarded"),
    path(f"{ATTACK}curl/", attacks_views.curl, name="curl"),
    path(f"{ATTACK}vary/", attacks_views.vary, name="vary"),
    path(f"{ATTACK}report.md", attacks_views.report, name="report"),
    path(f"{RUN}attacks/<slug:name>/", attacks_views.fire, name="fire"),
    path(f"{RUN}plans/<slug:name>/", attacks_views.plan, name="plan"),
    path(f"{RUN}plans/<uuid:plan_id>/take-back/", attacks_views.take_back, name="take_back"),
    path(f"{RUN}again/", start_views.again, name="again"),
    path(f"{RUN}<command:name>/", runs_views.command, name="command"),
    path("inbox/", inbox_views.home, name="inbox"),
    path("inbox/<code:code>/", inbox_views.home, name="inbox_row"),
    path("inbox/<code:code>/judge/", inbox_views.judge, name="inbox_judge"),
    path("inbox/<code:code>/<command:name>/", inbox_views.decide, name="inbox_decide"),
    path("agents/", agent_views.listing, name="agents"),
    path(CONNECT, connect_views.connect, name="connect"),
    path(f"{CONNECT}run/", connect_views.run_foreign, name="foreign"),
    path(f"{CONNECT}<slug:name>/", connect_views.connected, name="connected"),
    path(f"{CONNECT}<slug:name>/news/", connect_views.latest, name="connected_news"),
    path(AGENT, agent_views.one, name="agent"),
    path(f"{AGENT}<agent_command:event>/", agent_views.command, name="agent_command"),
    path(f"{AGENT}events/<int:number>/bytes/", agent_views.event, name="agent_event"),
    path("alerts/acknowledge/", agent_views.acknowledge, name="acknowledge"),
    path("ops/", ops_views.home, name="ops"),
    path("reconcile/", ops_views.reconcile, name="reconcile"),
    path("reconcile/check/", ops_views.check, name="check_difference"),
    path("attack/", arena_views.home, name="arena"),
    path("attack/gallery/", gallery_views.home, name="gallery"),
    path("attack/board/", arena_views.board, name="arena_board"),
    path("attack/gallery/news/", gallery_views.latest, name="gallery_news"),
    path("attack/gallery/<slug:name>/", gallery_views.fire, name="gallery_fire"),
    path(SHOT, gallery_views.shot, name="gallery_shot"),
    path(f"{SHOT}unguarded/", gallery_views.without_guard, name="gallery_unguarded"),
    path(f"{SHOT}report.md", gallery_views.report, name="gallery_report"),
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
    path("audit/<slug:name>/receipt.json", evidence.log_receipt, name="log_receipt"),
    path("links/", sharing_views.listing, name="links"),
    path("links/<uuid:link_id>/revoke/", sharing_views.revoke, name="link_revoke"),
    path("l/<str:token>/", sharing_views.opened, name="link"),
    path(f"{LINK}approve/", sharing_views.approve, name="link_approve"),
    path(f"{LINK}erase/", sharing_views.erase, name="link_erase"),
    path(f"{LINK}erase/certificate/", sharing_views.certificate, name="link_certificate"),
    path(f"{LINK}erase/certificate.json", sharing_views.certificate, name="link_json"),
    path("verify.py", evidence.verifier, name="verifier"),
    path("privacy/", privacy_suppliers.home, name="privacy_home"),
    path(WITH_RUNS, privacy_suppliers.erase, name="supplier_and_runs"),
    path(f"{WITH_RUNS}held/", privacy_suppliers.access, name="supplier_held"),
    path(f"{WITH_RUNS}held.json", privacy_suppliers.access_json, name="supplier_held_json"),
    path(f"{WITH_RUNS}certificate/", privacy_suppliers.certificate, name="with_runs_certificate"),
    path(f"{WITH_RUNS}certificate.json", privacy_suppliers.certificate, name="with_runs_json"),
    path("verify/", proof_views.verify, name="verify_file"),
    path("verify/offline.html", proof_views.offline, name="verify_offline"),
    path("privacy/<code:code>/", privacy_views.inventory, name="privacy"),
    path("privacy/<code:code>/erased/", privacy_views.erased, name="erased"),
    path(f"{CERTIFICATE}/", privacy_views.certificate, name="certificate"),
    path(f"{CERTIFICATE}.json", privacy_views.certificate, name="certificate_json"),
    path("suppliers/", supplier_views.listing, name="suppliers"),
    path("suppliers/preview/", supplier_views.preview_file, name="supplier_preview"),
    path("suppliers/import/", supplier_views.import_file, name="supplier_import"),
    path("suppliers/export.csv", supplier_views.export, name="supplier_export"),
    path(SUPPLIER, supplier_views.one, name="supplier"),
    path(f"{SUPPLIER}fix/", supplier_views.fix, name="supplier_fix"),
    path(f"{SUPPLIER}block/", supplier_views.block, {"event": "block"}, name="supplier_block"),
    path(f"{SUPPLIER}unblock/", supplier_views.block, {"event": "unblock"}, "supplier_unblock"),
    path(f"{SUPPLIER}erase/", supplier_views.erase, name="supplier_erase"),
    path(f"{SUPPLIER}certificate/", supplier_views.certificate, name="supplier_certificate"),
    path(f"{SUPPLIER}certificate.json", supplier_views.certificate, name="supplier_json"),
    path("tour/<int:number>/", tour_views.stop, name="tour"),
    path("register/", page(RedirectView.as_view(url="/suppliers/")), name="register"),
    path("proof/", page(RedirectView.as_view(url="/audit/")), name="proof"),
    path("policy/", docs_views.policy, name="policy"),
    path("docs/", docs_views.index, name="docs"),
    path("docs/rules/<slug:code>/", docs_views.rule, name="rule"),
    path("docs/addresses/", docs_views.addresses, name="addresses"),
    path("docs/threat-model/", docs_views.threat_model, name="threat_model"),
    path("docs/<slug:slug>/", docs_views.document, name="document"),
]
