# One image for every mode: FALCON_MODE says which processes `start` runs (docs/deploy.md).
# It runs as any user without rights, on a root file system that is read-only: what is
# written goes to /data (the archive), /jobs (workspaces and images of jobs) and /tmp.
# Terraform and Packer are not in it: docs/job-worker.md adds them.
ARG PYTHON=3.13-slim-trixie

FROM python:${PYTHON} AS build
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
RUN pip install --no-cache-dir uv==0.13.9
WORKDIR /app
COPY pyproject.toml uv.lock ./
RUN uv sync --frozen --no-dev --no-cache
COPY . .
# Nothing of these two values is kept: they only let production's settings be read.
RUN SECRET_KEY=build DATABASE_URL=postgresql://build@localhost/build DJANGO_ENV=production \
    .venv/bin/python manage.py collectstatic --no-input
# Compiled here, since nobody can write there later; and readable by any user.
RUN .venv/bin/python -m compileall -q -x '/[.]venv/' . \
    && chmod -R a=rX,u+w .

FROM python:${PYTHON}
LABEL org.opencontainers.image.title="Millrace" \
      org.opencontainers.image.description="Background operations of a multi-tenant Django installation, on nothing but its database." \
      org.opencontainers.image.licenses="MIT"
# Without its version: Debian keeps one of tini, and drops it with the next.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --gid 0 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin millrace \
    && install --directory --owner=10001 --group=0 --mode=0770 /data /jobs
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/app/.venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    USER=millrace \
    DJANGO_ENV=production \
    LOG_FORMAT=json \
    PORT=80 \
    ARCHIVE_ROOT=/data/archive \
    JOB_ROOT=/jobs
USER 10001:0
EXPOSE 80
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=60s --timeout=30s --start-period=120s --start-interval=5s --retries=3 \
    CMD ["python", "-m", "project.health"]
# tini reaps what others leave behind; `start` hears SIGTERM from it, and drains.
ENTRYPOINT ["tini", "--", "python", "manage.py"]
CMD ["start"]
