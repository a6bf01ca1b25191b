"""The course office: courses and learners' editions, learners, work and grades of a learning platform, reports."""
