"""Operators as a service: versions, A/B, fallback, choice, metrics, over HTTP or in process.

    with Service.load(Path("service.toml")) as service:
        answer = service.call("gelu", [x])

Names load when they are first used; they need `pip install 'opkit[service]'`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from opkit.errors import SetupError

if TYPE_CHECKING:
    from opkit.service.client import Client, ServiceAnswer
    from opkit.service.dash_history import DashLimits
    from opkit.service.dash_server import run_dash
    from opkit.service.deployment import Deployment
    from opkit.service.http import make_app
    from opkit.service.security import refuse_open_door
    from opkit.service.server import run_service
    from opkit.service.service import Service
    from opkit.service.serving import Answer, Attempt
    from opkit.service.settings import OperatorSettings, ServiceSettings, load_settings
    from opkit.service.store import Revision, Store, Version
    from opkit.service.telemetry import log_to

__all__ = [
    "Answer",
    "Attempt",
    "Client",
    "DashLimits",
    "Deployment",
    "OperatorSettings",
    "Revision",
    "Service",
    "ServiceAnswer",
    "ServiceSettings",
    "Store",
    "Version",
    "load_settings",
    "log_to",
    "make_app",
    "refuse_open_door",
    "run_dash",
    "run_service",
]

_HOMES = {
    "client": ("Client", "ServiceAnswer"),
    "dash_history": ("DashLimits",),
    "dash_server": ("run_dash",),
    "deployment": ("Deployment",),
    "http": ("make_app",),
    "security": ("refuse_open_door",),
    "server": ("run_service",),
    "service": ("Service",),
    "serving": ("Answer", "Attempt"),
    "settings": ("OperatorSettings", "ServiceSettings", "load_settings"),
    "store": ("Revision", "Store", "Version"),
    "telemetry": ("log_to",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_EXTRA = frozenset(
    {"alembic", "fastapi", "prometheus_client", "pydantic", "sqlalchemy", "starlette", "uvicorn"}
)


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{_HOME_OF[name]}")
    except ModuleNotFoundError as err:
        if (err.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise SetupError(
            f"{err.name} is not installed, which the service needs",
            help="pip install 'opkit[service]'",
        ) from err
    value: object = getattr(module, name)
    return value
