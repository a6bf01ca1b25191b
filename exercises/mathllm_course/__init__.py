"""The course office: learners and grades of a learning platform, extensions, and what was handed in there."""
