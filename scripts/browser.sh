#!/usr/bin/env bash
# Installs the browser that the report is tested in, where apt-get may be used and none is there.
# Without one those tests are skipped.
set -euo pipefail

for browser in chromium-headless-shell chromium google-chrome; do
  command -v "$browser" >/dev/null && exit 0
done
as_root=()
[[ $(id -u) == 0 ]] || as_root=(sudo -n)
if ! command -v apt-get >/dev/null || ! {
  "${as_root[@]}" apt-get update -qq </dev/null >/dev/null &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
      --no-install-recommends chromium-headless-shell </dev/null >/dev/null
}; then
  echo "No browser could be installed: the report is not tested in one." >&2
fi
