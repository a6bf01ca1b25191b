"""`python -m mathllm_grading`: grade a class in parallel, and restore its gradebook."""

import contextlib
import io
import os
import sys

import click

from mathllm.cli.group import Commands
from mathllm.errors import suggest

# A third of what is imported for grading is one grammar, with which jsonschema could check addresses of a kind that
# nothing here contains. Without it they go unchecked in the processes of this command.
sys.modules.setdefault("rfc3987_syntax", None)


@click.group(cls=Commands)
def main():
    """Grade submissions, and restore a gradebook. Run it in the course's folder, like nbgrader's own commands."""


@main.command("grade")
@click.argument("assignment")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Learners at a time.  [default: one for each core]")
@click.option("--student", "students", multiple=True, metavar="ID", help="Only this learner; may be repeated.")
@click.option("--force", is_flag=True, help="Grade again what is graded already.")
@click.option("--unsandboxed", is_flag=True, help="Run learners' code without a sandbox, with your own rights.")
@click.option("--scheduler", metavar="ADDRESS", help="Grade on the Dask cluster of this scheduler.")
def _grade(assignment, jobs, students, force, unsandboxed, scheduler):
    """Grade the submissions of ASSIGNMENT that are new, or were handed in again.

    It does what `nbgrader autograde ASSIGNMENT` does, several learners at a time. A failure costs nobody else a grade,
    Ctrl-C leaves whole grades only, and the gradebook is backed up first.

    The exit code is 0 if everybody is graded, 1 if somebody is not, 130 after Ctrl-C.
    """
    if scheduler and jobs:
        raise click.UsageError("--jobs goes with this machine, --scheduler with a cluster: its workers are the jobs")
    if unsandboxed:
        os.environ["MATHLLM_UNSANDBOXED"] = "yes"
        click.echo("NO SANDBOX: submissions can read and change whatever you can", err=True)
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # several learners share the cores already
    from . import sandbox, shell

    if not scheduler:
        shell.warm_up(sandbox.required())  # it imports what submissions need, while this process imports nbgrader
    from .run import Run, table

    results, interrupted = [], False
    with Run(assignment, students, force, scheduler) as run:
        coming = run.results(jobs or len(os.sched_getaffinity(0)))
        seen = sys.stderr if sys.stderr.isatty() else io.StringIO()
        try:
            with contextlib.closing(coming), click.progressbar(coming, length=len(run.tasks), file=seen) as watched:
                results.extend(watched)
        except KeyboardInterrupt:
            interrupted = True
    click.echo(table(run, results))
    for result in results:
        if result.log:
            click.echo(f"\n{result.learner}:\n{result.log.rstrip()}", err=True)
    if interrupted:
        click.echo("interrupted: what is missing is graded when the command is run again", err=True)
        sys.exit(130)
    sys.exit(1 if any(result.error for result in results) else 0)


@main.command("restore")
@click.argument("backup", required=False)
def _restore(backup):
    """List the backups of the gradebook, or put BACKUP in its place.

    A backup is made before each grading run, and the last 20 are kept. Before one is restored, the gradebook as it is
    becomes a backup, too.
    """
    from . import gradebook
    from .run import alone, open_course

    directory, _ = open_course()
    kept = {path.name: path for path in gradebook.backups(directory.root)}
    if backup is None:
        click.echo("\n".join(kept) or "there is no backup yet: the next grading run makes one")
        return
    name = os.path.basename(backup)
    if name not in kept:
        raise ValueError(f"there is no backup {name}{suggest(name, kept)}")
    with alone(directory.root):
        gradebook.restore(kept[name], directory.db_url)
    click.echo(f"the gradebook is as it was in {name}")


if __name__ == "__main__":
    main(prog_name="python -m mathllm_grading")
