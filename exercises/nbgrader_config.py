"""The nbgrader course. nbgrader's own commands, run in this folder, use these settings:

nbgrader generate_assignment 01_vectors && nbgrader release_assignment 01_vectors
nbgrader collect 01_vectors && nbgrader autograde 01_vectors
nbgrader generate_feedback 01_vectors && nbgrader release_feedback 01_vectors
nbgrader export
"""

import os
import warnings
from importlib.util import find_spec
from pathlib import Path

c = get_config()  # noqa: F821  traitlets provides it

c.CourseDirectory.course_id = "mathllm"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)

# Where work is handed in: nbgrader's own place (/usr/local/share/nbgrader/exchange, mode 1777), or another.
if os.environ.get("MATHLLM_EXCHANGE"):
    c.Exchange.root = os.environ["MATHLLM_EXCHANGE"]
c.ExchangeFactory.release_assignment = "mathllm_course.exchange.ReleaseAssignment"
c.ExchangeFactory.collect = "mathllm_course.exchange.Collect"
c.ExchangeFactory.release_feedback = "mathllm_course.exchange.ReleaseFeedback"

# Where grades are kept: gradebook.db in this folder, or a PostgreSQL database that a cluster can reach.
if os.environ.get("MATHLLM_GRADEBOOK"):
    c.CourseDirectory.db_url = os.environ["MATHLLM_GRADEBOOK"]

c.ClearSolutions.code_stub = {"python": "# your code here"}
c.ClearSolutions.text_stub = "*Your answer here.*"

# Grading: only values leave the learner's process; see mathllm_grading/autograde.py and mathllm_grading/grading.py.
c.Autograde.exporter_class = "mathllm_grading.autograde.Grader"

# Submissions run in a sandbox, see mathllm_grading/sandbox.py: megabytes for each and for its files, processes, and the
# seconds of a cell.
c.Limits.memory = 2048
c.Limits.disk = 256
c.Limits.processes = 100
c.Limits.cell_seconds = 30

# nbgrader's own handling of its database, nothing that an instructor could mend.
warnings.filterwarnings("ignore", "Object of type <Submitted.* not in session")

# Feedback is written anew each time: nbgrader would pass over a grade that was corrected by hand.
c.GenerateFeedback.force = True

# Feedback goes by titles, and leaves out the rubric, which is for the grader.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "mathllm_grading.feedback.Describe",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]

# Whatever a learner wrote, the formgrader and the feedback show it without a script and without asking another server:
# see mathllm_grading/inert.py and mathllm_grading/formulas.py.
c.HTMLExporter.sanitize_html = True
c.HTMLExporter.filters = {
    "highlight_code": "mathllm_grading.inert.highlight_code",
    "markdown2html": "mathllm_grading.formulas.markdown2html",
}
ours, theirs = (Path(find_spec(name).origin).parent for name in ("mathllm_grading", "nbgrader"))
c.HTMLExporter.extra_template_basedirs = [
    str(ours / "templates"),
    str(theirs / "server_extensions" / "formgrader" / "templates"),
]
