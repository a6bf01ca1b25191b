"""`python -m mathllm_course`: the course office. But for `init`, run it in the course's folder."""

import sys
from pathlib import Path

import click

from mathllm.cli.group import Commands


@click.group(cls=Commands)
def main():
    """Make a course and its learners' edition, enrol learners, collect and grade their work, and report on questions.

    But for `init`, run it in the course's folder.
    """


@main.command("init")
@click.argument("folder", type=click.Path(file_okay=False))
def _init(folder):
    """Make a course in FOLDER, with the book's assignments and settings. No checkout is needed."""
    from .office import make_course

    make_course(folder)
    click.echo(f"cd {folder}; then: python -m mathllm_course doctor, and nbgrader generate_assignment 01_vectors")


@main.command("doctor")
def _doctor():
    """Look at all that grading needs, and say how to mend what is wrong. The exit code is 1 if something is."""
    from mathllm_grading.run import open_course

    from .doctor import examine

    found = examine(*open_course())
    for name, problem in found.items():
        click.echo(f"{'MEND' if problem else 'ok':<5} {name:<12} {problem or ''}".rstrip())
    sys.exit(1 if any(found.values()) else 0)


@main.command("edition")
@click.argument("folder", type=click.Path(file_okay=False))
def _edition(folder):
    """Write the learners' edition of the book into FOLDER, without solutions, for the learners of the gradebook.

    It holds the chapters, the package, the exercises, and the assignments generated so far.
    """
    from .edition import make_edition
    from .office import opened_office

    with opened_office() as office:
        learners, directory = [student.id for student in office.book.students], office.directory
    if not learners:
        raise click.ClickException("nobody is enrolled yet: python -m mathllm_course enrol FILE")
    make_edition(folder, learners, directory.course_id, Path(directory.root, directory.release_directory))
    click.echo(f"{folder}: the edition for {len(learners)} learners; hand out this folder")


ID = click.option("--id", "id_column", metavar="COLUMN", help="The column with the learners' ids.")
CSV = click.argument("file", type=click.Path(exists=True, dir_okay=False))


@main.command("enrol")
@CSV
@ID
def _enrol(file, id_column):
    """Add the learners of a CSV FILE, as Moodle (Participants) or Canvas (Gradebook) exports it."""
    from .office import opened_office
    from .platform import read_learners

    learners = read_learners(file, id_column)
    with opened_office() as office:
        new = office.enrol(learners)
    click.echo(f"{len(learners.by_id)} learners of {learners.platform}, {new} of them new")


@main.command("grades")
@CSV
@click.option("-a", "--assignment", "assignments", multiple=True, help="Only this one; may be repeated.")
@click.option("-o", "--output", default="grades_to_import.csv", show_default=True, type=click.Path(dir_okay=False))
@click.option("--items", is_flag=True, help="A column for each item in place of each assignment.")
@ID
def _grades(file, assignments, output, items, id_column):
    """Write the grades into a copy of FILE, the gradebook as Moodle or Canvas exports it, to be imported there."""
    from .office import opened_office
    from .platform import read_learners, write_grades

    learners = read_learners(file, id_column)
    with opened_office() as office:
        points, possible, unread = office.points(assignments, items)
    write_grades(learners, points, possible, output)
    graded = len(points.keys() & learners.by_id)
    columns = f"{len(possible)} column{'' if len(possible) == 1 else 's'}"
    click.echo(f"{output}: {graded} of {len(learners.by_id)} learners of {learners.platform}, {columns}")
    for what, names in [("not in the file", points.keys() - learners.by_id), ("with texts still to be graded", unread)]:
        if names:
            click.echo(f"{what}: {', '.join(sorted(names))}", err=True)


@main.command("extend")
@click.argument("learner")
@click.argument("assignment")
@click.argument("time")
def _extend(learner, assignment, time):
    """Give LEARNER more TIME for ASSIGNMENT: 12h, 2d or 1w after the deadline; 0d takes it back."""
    from .office import opened_office

    with opened_office() as office:
        deadline = office.extend(learner, assignment, time)
    click.echo(f"{learner} may hand in {assignment} until {deadline:%Y-%m-%d %H:%M} UTC")
    click.echo(f"if it is graded already: python -m mathllm_grading grade {assignment} --student {learner} --force")


@main.command("collect")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.argument("assignment")
def _collect(folder, assignment):
    """Take the notebooks of ASSIGNMENT from FOLDER, an unpacked download of all submissions from Moodle or Canvas.

    A file counts as handed in when it was last changed, as the platform's archive says.
    """
    from .office import opened_office

    with opened_office() as office:
        done, unknown = office.collect(folder, assignment)
    for learner, what in sorted(done.items()):
        click.echo(f"{learner}: {what}")
    for place in unknown:
        click.echo(f"{place}: no learner is known for it; enrol FILE adds learners", err=True)
    click.echo(f"{sum(what.startswith('taken') for what in done.values())} of {len(done) + len(unknown)} taken")
    sys.exit(1 if unknown or any(what.startswith("not") for what in done.values()) else 0)


@main.command("grade-one")
@click.argument("assignment")
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@click.argument("learner")
@click.option("--to", "system", type=click.Choice(["gradescope", "classroom"]), required=True)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="The file to write or append to.")
def _grade_one(assignment, folder, learner, system, output):
    """Grade what LEARNER handed in, the notebooks in FOLDER, and write the result for another system.

    For Gradescope, -o is results.json, and LEARNER may be the path of submission_metadata.json. For GitHub Classroom,
    -o is $GITHUB_OUTPUT: the step's output `result` is what the reporter reads.
    """
    from .adapters import FORMATS, grade_one, learner_of

    if learner.endswith(".json"):
        learner = learner_of(Path(learner).read_text(encoding="utf-8"))
    text = FORMATS[system](grade_one(assignment, folder, learner))
    with open(output, "a" if system == "classroom" else "w", encoding="utf-8") as file:
        file.write(text)


@main.command("report")
@click.argument("assignments", nargs=-1, required=True, metavar="ASSIGNMENT...")
@click.option("-o", "--output", default="report.html", show_default=True, type=click.Path(dir_okay=False))
def _report(assignments, output):
    """Write a page about the questions of ASSIGNMENT..., with a CSV file beside it: who solved what, which mistakes."""
    from .office import opened_office
    from .report import write_csv, write_page

    with opened_office() as office:
        found, days = office.questions(assignments)
    table = Path(output).with_suffix(".csv")
    write_page(found, days, output)
    write_csv(found, table)
    click.echo(f"{output} and {table}: {len(found)} questions")


if __name__ == "__main__":
    main(prog_name="python -m mathllm_course")
