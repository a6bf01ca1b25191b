"""A large class graded by the workers of a Dask cluster, with the gradebook in PostgreSQL: by one worker, and by two.

    python benchmarks/grading_cluster.py
    python benchmarks/grading_cluster.py --learners 50 --assignment 06_softmax

Every learner hands in the model solution. Scheduler, workers and database run on this machine. The start of the run
counts; that of the cluster and of the database does not. PostgreSQL must be installed.
"""

import argparse
import contextlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from grading import BIN, make_course, run

INITDB = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
WORKERS = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        input()
"""


@contextlib.contextmanager
def database():
    """The address of a PostgreSQL server of our own; it refuses to be run by root."""
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as folder:
        user = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
        if user:
            shutil.chown(folder, "nobody", "nogroup")
        quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder} | user
        data, control = ["-D", f"{folder}/data"], INITDB[-1].with_name("pg_ctl")
        subprocess.run([INITDB[-1], *data, "-U", "teacher", "-A", "trust", "-E", "UTF8"], **quiet)
        options = ["-o", f"-k {folder} -c listen_addresses=''", "-l", f"{folder}/log", "-w"]
        subprocess.run([control, *data, *options, "start"], **quiet)
        try:
            yield f"postgresql+psycopg://teacher@/postgres?host={folder}"
        finally:
            subprocess.run([control, *data, "-m", "immediate", "stop"], **quiet)


@contextlib.contextmanager
def cluster(workers):
    """The address of a scheduler with so many workers of one thread each."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([BIN / "python", "-c", WORKERS, str(workers)], **pipes) as running:
        yield running.stdout.readline().strip()
        running.communicate("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learners", type=int, default=200)
    parser.add_argument("--assignment", default="01_vectors")
    options = parser.parse_args()
    if not INITDB:
        print("not measured: PostgreSQL is not installed (apt install postgresql)")
        return
    print(f"{platform.machine()}, {os.cpu_count()} cores; {options.learners} submissions of {options.assignment}")
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder, database() as address, cluster(workers) as scheduler:
            os.environ["MATHLLM_GRADEBOOK"] = address
            course = make_course(Path(folder, "course"), options.assignment, options.learners)
            grade = [BIN / "python", "-m", "mathllm_grading", "grade", options.assignment, "--scheduler", scheduler]
            seconds = run(grade, course)
            print(f"{workers} worker(s): {seconds:.0f} s, {60 * options.learners / seconds:.0f} submissions a minute")


if __name__ == "__main__":
    main()
