"""`slacktide monitors check` is called again and again: it loads only what it needs."""

import subprocess
import sys

from infra.paths import CONF

SLOW = ("pyflink", "pyspark", "torch", "matplotlib", "scipy.stats", "scipy.signal", "scipy.optimize", "scipy.ndimage")


def test_check_loads_no_engine_and_little_of_scipy() -> None:
    code = (
        f"import sys\nfrom infra.cli import main\ntry:\n main(['monitors', 'check', {str(CONF / 'monitors.yaml')!r}])\n"
    )
    code += f"except SystemExit: pass\nprint([name for name in {SLOW} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("all is well\n"), done.stderr
    assert done.stderr == "[]\n"
