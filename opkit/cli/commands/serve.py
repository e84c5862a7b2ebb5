"""`opkit serve`: operators as a service."""

from __future__ import annotations

from pathlib import Path

import click

from opkit.cli.console import Console, common_options

__all__ = ["command"]


@click.command("serve", short_help="Serve operators over HTTP, version by version.")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--host", metavar="HOST", help="The address; the configuration's by default.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="The port; the configuration's by default, 0 takes a free one.",
)
@click.option(
    "--check", is_flag=True, help="Open the store, load every version, say what is deployed, end."
)
@common_options
def command(
    *, config: Path, host: str | None, port: int | None, check: bool, console: Console
) -> None:
    """Serve operators over HTTP, version by version.

    CONFIG is a TOML file that docs/service.md explains. What was deployed last is served, whatever
    the configuration says of it: that counts for operators that the store does not know yet.

    SIGTERM and Ctrl-C end it: calls that are under way are answered first.

    Example: opkit serve examples/service/service.toml --port 8000
    """
    from opkit import service
    from opkit.service import Service, load_settings

    settings = load_settings(config)
    changes = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    settings = settings.model_copy(update={"http": settings.http.model_copy(update=changes)})
    service.refuse_open_door(settings.http)
    service.log_to(settings.telemetry.log)
    with Service(settings, base=config.absolute().parent) as served:
        if check:
            _check(served, console)
            return

        def ready(address: str) -> None:
            if console.json:
                console.emit_json({"address": address, "operators": served.operators})
            else:
                console.result(f"serving {', '.join(served.operators) or 'nothing yet'}: {address}")
                console.status("dashboard", f"{address}/dash")

        service.run_service(served, ready=ready)


def _check(served: object, console: Console) -> None:
    from opkit.errors import OperatorError
    from opkit.service import Service

    assert isinstance(served, Service)
    served.wait_until_ready()
    report = served.report()
    problems = []
    rows = []
    for operator in report["operators"]:
        for version in operator["versions"]:
            state = "ready" if version["ready"] else version["problem"] or "not ready"
            share = f"{100 * version['share']:g} %"
            rows.append(
                (operator["operator"], version["version"], version["digest"][:12], share, state)
            )
            if not version["ready"]:
                problems.append(f"{operator['operator']} {version['version']}: {state}")
    if console.json:
        console.emit_json({"ok": not problems, "operators": report["operators"]})
    else:
        columns = ("operator", "version", "content", "share", "state")
        console.table(columns, rows, right=("share",))
    if problems:
        raise OperatorError("; ".join(problems))
