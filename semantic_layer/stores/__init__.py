"""Where entries, vectors and shared state lie: Redis or Valkey, Qdrant, memory."""
