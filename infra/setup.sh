#!/usr/bin/env bash
# Sets the project up: `setup.sh check` looks for Python 3.11, Java 17 and Maven and names what is missing with how to
# get it; `setup.sh packages` makes .venv from constraints.txt; `setup.sh jars` fetches the jars of infra/pom.xml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
JARS="${JARS:-.slacktide/jars}"
missing=0

say() { printf 'setup: %s\n' "$*" >&2; }

lack() { say "$1"; say "    $2"; missing=1; }

python_version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true; }

# The first Python 3.11 of: $PYTHON, python3.11, python3, python.
find_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3 python; do
    if [ "$(python_version "$candidate")" = 3.11 ]; then
      echo "$candidate"
      return
    fi
  done
}

check_python() {
  local python found
  python="$(find_python)"
  if [ -z "$python" ]; then
    found="$(python_version "${PYTHON:-python3}")"
    lack "Python 3.11 is missing${found:+ (${PYTHON:-python3} is $found)}." \
      "Install it (apt-get install python3.11 python3.11-venv, or pyenv install 3.11), or call make PYTHON=/path/to/python3.11."
  elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    lack "$python lacks the venv module." "Install it (apt-get install python3.11-venv)."
  fi
}

check_java() {
  local java version
  java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
  if ! command -v "$java" >/dev/null; then
    lack "Java 17 is missing${JAVA_HOME:+ (JAVA_HOME is $JAVA_HOME)}." \
      "Install it (apt-get install openjdk-17-jre-headless, or brew install openjdk@17), or set JAVA_HOME."
    return
  fi
  version="$("$java" -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p')"
  if [ "$version" != 17 ]; then
    lack "Java 17 is needed; $java is Java ${version:-unknown}." \
      "Install it (apt-get install openjdk-17-jre-headless) and point JAVA_HOME at it."
  fi
}

check_maven() {
  command -v mvn >/dev/null || lack "Maven is missing." "Install it (apt-get install maven, or brew install maven)."
}

check() {
  check_python
  check_java
  check_maven
  return "$missing"
}

packages() {
  local python
  python="$(find_python)"
  [ -x .venv/bin/python ] && [ "$(python_version .venv/bin/python)" = 3.11 ] || "$python" -m venv --clear .venv
  say "Python packages into .venv (2 to 4 minutes and 7 GB the first time: torch brings CUDA with it)"
  if .venv/bin/python -m pip install --quiet --constraint constraints.txt uv &&
    .venv/bin/uv pip install --quiet --python .venv/bin/python --constraint constraints.txt \
      --build-constraint constraints.txt --editable '.[dev,scorers]'; then
    :
  else
    say "uv can't be had or failed; pip does the same, slower"
    PIP_CONSTRAINT=constraints.txt .venv/bin/python -m pip install --quiet --editable '.[dev,scorers]'
  fi
  compiled
}

# A Python worker that compiles what it imports takes twice as long to start; where PYTHONDONTWRITEBYTECODE is set each
# one would. Some files of packages are meant for other Pythons: they can't be compiled, and nobody imports them.
compiled() {
  .venv/bin/python -m compileall -qq -j 0 -x '/(tests?|testing_|examples)/' .venv/lib/python3.11/site-packages || true
}

# Whatever it is told about colours, Maven 3.8 resets them at its end: without this a log holds bare escapes.
plain() { sed $'s/\e\\[[0-9;]*m//g'; }

jars() {
  local profile part
  for profile in broker flink spark; do
    say "jars of the $profile into $JARS/$profile"
    part="$JARS/$profile.part"
    rm -rf "$part"
    mvn --quiet --batch-mode -Dstyle.color=never --file infra/pom.xml --activate-profiles "$profile" dependency:copy-dependencies \
      -DoutputDirectory="$(mkdir -p "$part" && cd "$part" && pwd)" 2>&1 | plain
    rm -rf "${JARS:?}/$profile"
    mv "$part" "$JARS/$profile"
  done
}

case "${1:-}" in
  check | packages | jars) "$1" ;;
  *) say "usage: setup.sh check|packages|jars"; exit 64 ;;
esac
