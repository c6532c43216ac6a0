"""Write the Grafana dashboard: ``python -m deploy.dashboard``.

Refuses a panel that asks for a metric the gateway does not have.
"""

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from deploy.panels import ROWS, Panel, Query, Row
from gateway.metrics import Metrics
from prefix_layer import EngineStats

PATH = Path(__file__).parent / "grafana/dashboards/strata.json"
SOURCE = {"type": "prometheus", "uid": "prometheus"}
OWN = re.compile(r"\b((?:strata|process)_\w+)(?:\{([^}]*)\})?")
INSTANCE = 'instance=~"$instance"'
WIDTH = 24
CHART = (12, 8)
NUMBER = (4, 4)

Tree = dict[str, Any]


def described() -> dict[str, str]:
    """Return what each metric of the gateway counts, by its name."""
    metrics = Metrics()
    metrics.set_engine(EngineStats("", 0, 0, {}, {}, {}, {}, 0, 0, 0))
    return dict(re.findall(r"# HELP (\w+) (.+)", metrics.render().decode()))


def dashboard() -> Tree:
    """Return the dashboard as Grafana's JSON model.

    Raises:
        KeyError: a panel asks for a metric the gateway does not have.

    Source: grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model
    """
    return {
        "uid": "strata",
        "title": "Strata",
        "tags": ["strata"],
        "timezone": "browser",
        "schemaVersion": 39,
        "version": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_instances()]},
        "panels": list(_panels()),
    }


def written() -> str:
    """Return the dashboard as it is kept in its file."""
    return json.dumps(dashboard(), indent=2) + "\n"


def _instances() -> Tree:
    query = "label_values(strata_breaker_open, instance)"
    return {
        "name": "instance",
        "label": "Gateway",
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": "instances"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panels() -> Iterator[Tree]:
    helps, ids, top = described(), count(1), 0
    for row in ROWS:
        yield _heading(row, next(ids), top)
        top += 1
        left = height = 0
        for panel in row.panels:
            wide, high = NUMBER if panel.is_number else CHART
            if left + wide > WIDTH:
                left, top = 0, top + height
            at = {"h": high, "w": wide, "x": left, "y": top}
            yield _panel(panel, next(ids), at, helps)
            left, height = left + wide, high
        top += height


def _heading(row: Row, panel_id: int, top: int) -> Tree:
    at = {"h": 1, "w": WIDTH, "x": 0, "y": top}
    return {"id": panel_id, "title": row.title, "type": "row", "gridPos": at, "panels": []}


def _panel(panel: Panel, panel_id: int, at: Tree, helps: dict[str, str]) -> Tree:
    names = (name for query in panel.queries for name in OWN.findall(query.expr))
    texts = dict.fromkeys(helps[_family(name, helps)] for name, _ in names)
    return {
        "id": panel_id,
        "title": panel.title,
        "description": "; ".join(texts),
        "type": "stat" if panel.is_number else "timeseries",
        "datasource": SOURCE,
        "gridPos": at,
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "targets": [_target(query, chr(ord("A") + i)) for i, query in enumerate(panel.queries)],
    }


def _family(name: str, helps: dict[str, str]) -> str:
    return name if name in helps else re.sub(r"_(bucket|sum|count)$", "", name)


def _defaults(panel: Panel) -> Tree:
    defaults: Tree = {"unit": panel.unit, "min": 0}
    if panel.warn_above is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.warn_above}]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    return defaults


def _target(query: Query, ref: str) -> Tree:
    return {"refId": ref, "expr": OWN.sub(_of_instance, query.expr), "legendFormat": query.legend}


def _of_instance(found: re.Match[str]) -> str:
    name, labels = found.groups()
    return f"{name}{{{', '.join(filter(None, [labels, INSTANCE]))}}}"


if __name__ == "__main__":
    PATH.write_text(written())
