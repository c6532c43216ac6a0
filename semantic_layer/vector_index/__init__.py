"""Where embedded texts are found: one protocol, in memory, in process, or on a Qdrant server."""

from semantic_layer.vector_index.base import (
    Neighbour,
    Point,
    Vector,
    VectorIndex,
    collection_name,
    point_id,
)

__all__ = ["Neighbour", "Point", "Vector", "VectorIndex", "collection_name", "point_id"]
