FROM python:3.12-slim-bookworm
@COMPILER@RUN pip install --no-cache-dir torch==@TORCH@ --index-url https://download.pytorch.org/whl/cpu \
    && pip install --no-cache-dir 'kernel-gym[@EXTRAS@]==@VERSION@' triton==@TRITON@
WORKDIR /app
COPY workspace/ /app/
