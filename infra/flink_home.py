"""A FLINK_HOME of our own, made of links into the installed pyflink, which is a whole Flink distribution.

`lib/` and `opt/` are real folders holding links to jars, because Flink follows no linked folder when it collects them.
The Kafka connector and flink-python go into `lib/`, so that no job has to bring them.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from infra.paths import CONF, class_path, jars, java, pyflink_home

CLUSTER_CONFIG, CLIENT_CONFIG = "flink-config.yaml", "flink-client-config.yaml"


class FlinkHome:
    """Jars, configuration and logs under `folder`, and the environment that Flink's own scripts need to use them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lib, self.opt, self.plugins = folder / "lib", folder / "opt", folder / "plugins"
        self.conf, self.log = folder / "conf", folder / "log"

    def prepare(self, settings: Mapping[str, str], template: str = CLUSTER_CONFIG) -> None:
        """Link the jars and write the configuration; `settings` are the upper-case names of the template in conf/."""
        installed = pyflink_home()
        python_jar = sorted((installed / "opt").glob("flink-python-*.jar"))
        _link_all(self.lib, [*sorted((installed / "lib").glob("*.jar")), *python_jar, *jars("flink")])
        _link_all(self.opt, sorted((installed / "opt").glob("*.jar")))
        _link_all(self.plugins, [installed / "plugins" / "metrics-prometheus"])
        for name in ("tmp", "upload", "checkpoints", "savepoints"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.log.mkdir(parents=True, exist_ok=True)
        self.conf.mkdir(parents=True, exist_ok=True)
        text = (CONF / template).read_text()
        for name, value in ({"FLINK_FOLDER": str(self.folder), "PYTHON": sys.executable} | dict(settings)).items():
            text = text.replace(name, value)
        (self.conf / "config.yaml").write_text(text)
        for name in ("log4j.properties", "log4j-cli.properties"):
            shutil.copyfile(CONF / "flink-log4j.properties", self.conf / name)

    @property
    def settings(self) -> dict[str, object]:
        """The configuration as written."""
        loaded: dict[str, object] = yaml.safe_load((self.conf / "config.yaml").read_text())
        return loaded

    @property
    def class_path(self) -> str:
        """The cluster's class path: flink-dist last, as Flink's own scripts have it."""
        found = sorted(self.lib.glob("*.jar"))
        return class_path([jar for jar in found if "dist" not in jar.name] + [j for j in found if "dist" in j.name])

    @property
    def flink(self) -> Path:
        """The shipped command `flink`."""
        return pyflink_home() / "bin" / "flink"

    @property
    def environment(self) -> dict[str, str]:
        """What Flink's processes and scripts need beside the user's environment."""
        return {
            "FLINK_CONF_DIR": str(self.conf),
            "FLINK_LIB_DIR": str(self.lib),
            "FLINK_OPT_DIR": str(self.opt),
            "FLINK_PLUGINS_DIR": str(self.plugins),
            "FLINK_LOG_DIR": str(self.log),
            "JAVA_HOME": str(Path(os.path.realpath(java())).parent.parent),
            # Workers must not write .pyc files, nor read the user's own packages.
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
        }


def _link_all(folder: Path, targets: list[Path]) -> None:
    """Make `folder` hold links to `targets` and nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {target.name: target for target in targets}
    for present in folder.iterdir():
        if present.name not in wanted or present.resolve() != wanted[present.name].resolve():
            present.unlink()
    for name, target in wanted.items():
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(target)
