#!/usr/bin/env bash
# Sets a fresh machine up, step by step, and says what to do where a step fails. `make` calls it.
#   setup.sh python VENV   the virtual environment VENV, with headrace and everything it may use, pinned versions
#   setup.sh java          Java 17 and Maven are here
#   setup.sh prometheus VENV   prometheus and promtool for the tests of alerts and dashboards, if they can be had
#   setup.sh browser       Chromium for the tests of the console's page, if it can be had
set -euo pipefail
cd "$(dirname "$0")/.."

readonly MIN_PYTHON="3.11" MIN_JAVA=17

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Standard output belongs to what `make` was asked for: `make demo DEMO=--json | jq`.
say() { printf 'setup: %s\n' "$*" >&2; }

fail() {
  printf 'setup: %s\n' "$1" >&2
  shift
  printf '  %s\n' "$@" >&2
  exit 1
}

find_python() {
  local name
  for name in python3.13 python3.12 python3.11 python3; do
    if command -v "$name" >/dev/null 2>&1 &&
      "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  fail "headrace needs Python $MIN_PYTHON to 3.13, and none is on PATH. Get one:" \
    "Debian 12, Ubuntu 24.04: sudo apt-get install python3 python3-venv" \
    "Fedora:                  sudo dnf install python3" \
    "macOS:                   brew install python@3.12" \
    "elsewhere:               https://www.python.org/downloads"
}

make_venv() {
  local python=$1 venv=$2 version
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if [[ -x $venv/bin/python ]] && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    return
  fi
  say "creating $venv with $python ($version)"
  rm -rf "$venv"
  "$python" -m venv "$venv" >"$log" 2>&1 || {
    rm -rf "$venv"
    fail "$python could not create $venv; most often its venv module is a package of its own:" \
      "Debian, Ubuntu: sudo apt-get install python$version-venv" \
      "what it said:" "$(tail -n 5 "$log")"
  }
}

install_python() {
  local venv=${1:?usage: setup.sh python VENV} python
  python=$(find_python)
  make_venv "$python" "$venv"
  say "installing headrace with its pinned dependencies into $venv (about 100 packages, some 250 MB; minutes, once)"
  local started=$SECONDS
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --progress-bar off \
    --constraint infra/constraints.txt --editable '.[all,dev]' >"$log" 2>&1 &
  local pip=$!
  while kill -0 "$pip" 2>/dev/null; do
    sleep 1
    (((SECONDS - started) % 15)) || say "still installing, $((SECONDS - started)) s"
  done
  wait "$pip" || fail "pip could not install the dependencies; see what it said, mend it, and run \`make setup\` again:" \
    "no network or a proxy: pip reads HTTPS_PROXY and its own configuration" \
    "what it said:" "$(tail -n 15 "$log")"
  say "installed in $((SECONDS - started)) s"
}

check_java() {
  local java=${JAVA_HOME:+$JAVA_HOME/bin/java} maven=${MAVEN_HOME:+$MAVEN_HOME/bin/mvn} version
  [[ -x $java ]] || java=$(command -v java || true)
  [[ -x $maven ]] || maven=$(command -v mvn || true)
  version=0
  if [[ -n $java ]]; then
    version=$("$java" -version 2>&1 | sed -nE 's/.*version "(1\.)?([0-9]+).*/\2/p' | head -n 1)
  fi
  if ((${version:-0} < MIN_JAVA)); then
    fail "the tests start Apache Kafka, which needs Java $MIN_JAVA or later; found: ${java:-none} ${version:-}. Get it:" \
      "Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless" \
      "Fedora:         sudo dnf install java-17-openjdk-headless" \
      "macOS:          brew install openjdk@17" \
      "elsewhere:      https://adoptium.net" \
      "Without Java: \`make check\` and \`make demo\` need none."
  fi
  if [[ -z $maven ]]; then
    fail "Kafka's jars are fetched by Maven, and no mvn is on PATH. Get it:" \
      "Debian, Ubuntu: sudo apt-get install maven" \
      "Fedora:         sudo dnf install maven" \
      "macOS:          brew install maven" \
      "elsewhere:      https://maven.apache.org/install.html" \
      "Without Maven: \`make check\` and \`make demo\` need none."
  fi
}

# Never fails: without them the tests that need them say so and are skipped.
install_prometheus() {
  local venv=${1:?usage: setup.sh prometheus VENV} folder
  if [[ -x $venv/bin/promtool && -x $venv/bin/prometheus ]]; then
    return
  fi
  if command -v promtool >/dev/null 2>&1 && command -v prometheus >/dev/null 2>&1; then
    return
  fi
  if command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1; then
    folder=$(mktemp -d)
    # Unpacked, not installed: the package would start a server.
    if (
      cd "$folder"
      apt-get -qq download prometheus || { ((EUID == 0)) && apt-get -qq update && apt-get -qq download prometheus; }
      dpkg -x prometheus_*.deb .
    ) >"$log" 2>&1 && cp "$folder/usr/bin/promtool" "$folder/usr/bin/prometheus" "$venv/bin/"; then
      rm -rf "$folder"
      say "prometheus and promtool are in $venv/bin"
      return
    fi
    rm -rf "$folder"
  fi
  say "prometheus and promtool are not here; the tests of alerts and dashboards that need them are skipped. Get them:"
  say "  Debian, Ubuntu: sudo apt-get install prometheus    macOS: brew install prometheus"
}

install_browser() {
  local name
  for name in "${HEADRACE_CHROMIUM:-}" chromium chromium-browser google-chrome chrome chromium-headless-shell; do
    if [[ -n $name ]] && command -v "$name" >/dev/null 2>&1; then
      return
    fi
  done
  if command -v apt-get >/dev/null 2>&1 && ((EUID == 0)); then
    say "installing Chromium for the console's tests"
    if (apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 install chromium) \
      >"$log" 2>&1 && command -v chromium >/dev/null 2>&1; then
      return
    fi
  fi
  say "Chromium is not here; the tests of the console's page are skipped. Get it, or name one in HEADRACE_CHROMIUM:"
  say "  Debian: sudo apt-get install chromium    Fedora: sudo dnf install chromium    macOS: brew install chromium"
}

case ${1:-} in
  python) install_python "${2:-}" ;;
  java) check_java ;;
  prometheus) install_prometheus "${2:-}" ;;
  browser) install_browser ;;
  *) fail "usage: infra/setup.sh python VENV | java | prometheus VENV | browser" "what was asked for: ${1:-nothing}" ;;
esac
