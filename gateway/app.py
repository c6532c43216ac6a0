"""The composition root: routes, error mapping and the lifespan that opens the parts."""

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from litestar import Litestar, Router
from litestar.types import ASGIApp

from gateway.access_log import AccessLog
from gateway.admin.backup import back_up, restore
from gateway.admin.cache import (
    browse_entries,
    import_entries,
    invalidate_entries,
    lookup,
)
from gateway.admin.doctor import doctor
from gateway.admin.entrance import admin_only
from gateway.admin.experiments import (
    end_experiment,
    get_experiment,
    list_experiments,
    start_experiment,
)
from gateway.admin.feedback import give_feedback
from gateway.admin.intents import (
    delete_intent,
    get_curve,
    get_intent,
    intent_history,
    list_intents,
    put_intent,
    replay_intent,
)
from gateway.admin.labels import import_labels
from gateway.admin.prefix import explain, reset, tree, unpin, volatile, warm
from gateway.admin.reload import reload_settings
from gateway.admin.requests import get_request, list_requests
from gateway.admin.review import list_review
from gateway.admin.stats import prefix, series, traffic
from gateway.admin.tenants import list_tenants
from gateway.admin.upstreams import drain, list_upstreams, undrain
from gateway.api import chat, completions, embeddings, messages, responses
from gateway.api.chat import create_chat_completion
from gateway.api.completions import create_completion
from gateway.api.embeddings import create_embeddings
from gateway.api.health import live, metrics, ready
from gateway.api.messages import count_tokens, create_message
from gateway.api.models import get_model, list_models
from gateway.api.openapi import openapi_config
from gateway.api.responses import (
    cancel_response,
    create_response,
    delete_response,
    get_response,
    list_input_items,
)
from gateway.api.shortcut import Shortcut
from gateway.auth import check_exposure
from gateway.dashboard import APP_ERRORS, dashboard_router, static_files, template_config
from gateway.lifespan import open_parts
from gateway.parts import Parts
from gateway.reload import Reloader
from gateway.settings import Settings, load_settings
from gateway.takeover import Takeover
from gateway.telemetry import access_writer, configure_logging
from gateway.traces import Traces, open_traces

Load = Callable[[], Settings]

_SHORTCUTS: dict[str, ASGIApp] = {
    chat.ROUTE: chat.answer_chat,
    completions.ROUTE: completions.answer_completions,
    messages.ROUTE: messages.answer_messages,
    responses.ROUTE: responses.answer_responses,
    embeddings.ROUTE: embeddings.answer_embeddings,
}


def create_app(
    settings: Settings | None = None, parts: Parts | None = None, load: Load | None = None
) -> Litestar:
    """Build the gateway's ASGI app.

    Args:
        settings: None reads them from the environment.
        load: reads the settings anew for a reload; None reads them from the environment.
        parts: opened parts, which stay the caller's to close; None opens them in the lifespan.

    Raises:
        SettingsError: the settings are wrong, or would serve other machines without keys.
    """
    if settings is None:
        settings = load_settings(None, os.environ) if parts is None else parts.settings
    check_exposure(settings)
    traces = open_traces(settings.traces)
    app = Litestar(
        route_handlers=[
            create_chat_completion,
            create_completion,
            create_message,
            count_tokens,
            create_response,
            get_response,
            delete_response,
            list_input_items,
            cancel_response,
            create_embeddings,
            list_models,
            get_model,
            live,
            ready,
            metrics,
            _admin_router(),
            dashboard_router(),
            static_files(),
        ],
        template_config=template_config(),
        lifespan=[] if parts is not None else [_opened(settings, traces, load or _load)],
        exception_handlers=APP_ERRORS,
        openapi_config=openapi_config(_version()),
        logging_config=None,
    )
    if parts is not None:
        app.state["parts"] = parts
    access_log = AccessLog(Shortcut(app.asgi_handler, _SHORTCUTS), access_writer(settings.log))
    app.state["access_log"] = access_log
    app.asgi_handler = traces.app(access_log)
    return app


def _admin_router() -> Router:
    return Router(
        path="/admin",
        guards=[admin_only],
        tags=["admin"],
        route_handlers=[
            lookup,
            import_entries,
            browse_entries,
            invalidate_entries,
            list_intents,
            get_intent,
            put_intent,
            delete_intent,
            intent_history,
            get_curve,
            replay_intent,
            list_review,
            import_labels,
            list_experiments,
            start_experiment,
            get_experiment,
            end_experiment,
            give_feedback,
            list_requests,
            get_request,
            traffic,
            series,
            prefix,
            tree,
            explain,
            warm,
            reset,
            unpin,
            volatile,
            list_upstreams,
            drain,
            undrain,
            list_tenants,
            doctor,
            reload_settings,
            back_up,
            restore,
        ],
    )


def _load() -> Settings:
    return load_settings(None, os.environ)


def _opened(
    settings: Settings, traces: Traces, load: Load
) -> Callable[[Litestar], AbstractAsyncContextManager[None]]:
    @contextlib.asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        configure_logging(settings.log)
        async with open_parts(settings, traces) as parts:

            def install(changed: Parts) -> None:
                app.state["parts"] = replace(changed, reloader=reloader)
                configure_logging(changed.settings.log)
                app.state["access_log"].write = access_writer(changed.settings.log)

            reloader = Reloader(settings, load, Takeover(parts, install).take)
            app.state["parts"] = replace(parts, reloader=reloader)
            yield

    return lifespan


def _version() -> str:
    try:
        return version("strata-gateway")
    except PackageNotFoundError:  # run from a source folder that was never installed
        return "0"
