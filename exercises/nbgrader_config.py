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

import zmq

c = get_config()  # noqa: F821  traitlets provides it

c.CourseDirectory.course_id = "mathllm"
c.CourseDirectory.root = str(Path(__file__).resolve().parent)

# Where work is handed in: nbgrader's own place (/usr/local/share/nbgrader/exchange, mode 1777), or another.
if os.environ.get("MATHLLM_EXCHANGE"):
    c.Exchange.root = os.environ["MATHLLM_EXCHANGE"]
c.ExchangeFactory.release_assignment = "mathllm_grading.collect.ReleaseAssignment"
c.ExchangeFactory.collect = "mathllm_grading.collect.Collect"
c.ExchangeFactory.release_feedback = "mathllm_grading.collect.ReleaseFeedback"

# Where grades are kept: gradebook.db in this folder, or a PostgreSQL database that a cluster can reach.
if os.environ.get("MATHLLM_GRADEBOOK"):
    c.CourseDirectory.db_url = os.environ["MATHLLM_GRADEBOOK"]

c.ClearSolutions.code_stub = {"python": "# your code here"}
c.ClearSolutions.text_stub = "*Your answer here.*"

# Grading: only values leave the learner's process; see mathllm_grading/grader.py.
c.Autograde.exporter_class = "mathllm_grading.sanitise.Reader"
c.Autograde.pre_convert_hook = "mathllm_grading.sanitise.prepare_submission"
c.Autograde.sanitize_preprocessors = [
    "mathllm_grading.sanitise.Restore",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "mathllm_grading.grader.TrustedExecute",
    "mathllm_grading.grader.ShowRubric",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "mathllm_grading.grader.FlagForReview",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Execute.timeout = 30

# Submissions run in a sandbox, see mathllm_grading/sandbox.py: megabytes for each and for its files, and processes.
c.SandboxedKernelManager.memory = 2048
c.SandboxedKernelManager.disk = 256
c.SandboxedKernelManager.processes = 100

# Without a sandbox, kernels are reached over a local port: keep others from listening.
if zmq.has("curve"):
    c.KernelManager.transport_encryption = "auto"

# nbgrader's own handling of its database, nothing that an instructor could mend.
warnings.filterwarnings("ignore", "Object of type <Submitted.* not in session")

# Feedback is written anew each time: nbgrader would pass over a grade that was corrected by hand.
c.GenerateFeedback.force = True

# The rubric is for the grader; feedback leaves it out.
c.GenerateFeedback.preprocessors = [
    "mathllm_grading.grader.HideRubric",
    "nbgrader.preprocessors.GetGrades",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]

# Whatever a learner wrote, the formgrader and the feedback show it without a script and without asking another server:
# see mathllm_grading/inert.py and mathllm_grading/formulas.py.
c.HTMLExporter.sanitize_html = True
c.HTMLExporter.filters = {"markdown2html": "mathllm_grading.formulas.markdown2html"}
ours, theirs = (Path(find_spec(name).origin).parent for name in ("mathllm_grading", "nbgrader"))
c.HTMLExporter.extra_template_basedirs = [
    str(ours / "templates"),
    str(theirs / "server_extensions" / "formgrader" / "templates"),
]
