"""How logs are written: JSON for machines, coloured text on a terminal; never prompts or keys.

Standard library loggers of our dependencies go the same way.
"""

import logging
import sys

import msgspec
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from gateway.access_log import JsonLines, WriteLine, write_nothing, write_to_console
from gateway.setting_sections import LogSettings

_CHATTY = ("httpx", "httpcore", "filelock", "urllib3", "sentence_transformers", "transformers")


def configure_logging(settings: LogSettings) -> None:
    """Send all logs to standard output in the format and from the level of the settings."""
    level = _level(settings)
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderers = _renderers(settings)
    structlog.configure(
        processors=[*shared, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stdout),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(level)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def access_writer(settings: LogSettings) -> WriteLine:
    """Return what writes the line of each request."""
    if _level(settings) > logging.INFO:
        return write_nothing
    return write_to_console if _is_for_people(settings) else JsonLines()


def _level(settings: LogSettings) -> int:
    return logging.getLevelNamesMapping()[settings.level.upper()]


def _is_for_people(settings: LogSettings) -> bool:
    return settings.format == "console" or (settings.format == "auto" and sys.stdout.isatty())


def _renderers(settings: LogSettings) -> list[Processor]:
    if _is_for_people(settings):
        return [structlog.dev.ConsoleRenderer(colors=sys.stdout.isatty())]
    return [structlog.processors.format_exc_info, _render_json]


def _render_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()
