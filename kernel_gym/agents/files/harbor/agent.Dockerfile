FROM python:3.12-slim-bookworm
@COMPILER@RUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu \
    && pip install --no-cache-dir 'kernel-gym[judge]==@VERSION@'
WORKDIR /app
COPY workspace/ /app/
