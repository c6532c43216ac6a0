"""How templates are read: everything is escaped, and a name that is not there is an error."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.template import TemplateConfig

from gateway.dashboard.words import FILTERS, visible

FOLDER = Path(__file__).with_name("templates")


def environment() -> Environment:
    """Return the environment of the pages' templates."""
    found = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    found.filters.update(FILTERS)
    return found


def template_config() -> TemplateConfig[JinjaTemplateEngine]:
    """Return the app's templates."""
    return TemplateConfig(instance=JinjaTemplateEngine.from_environment(environment()))
