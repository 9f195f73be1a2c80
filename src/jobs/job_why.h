// Says why a job is in its state, and what the user can do. Pure.
#pragma once

#include "base/error.h"
#include "codec/json.h"
#include "jobs/job_book.h"
#include "looks/answer.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs {

struct Explanation {
  std::string text;             // whole lines
  nlohmann::ordered_json json;  // for --json
  std::size_t advice_at = 0;    // where in the text the last line, the advice, begins
};

// The last hang of a job's last attempt, by the report of one node.
struct Hang {
  std::string words;     // "hung for 31 s: rank 3 at data.py:41"; empty: none
  std::string folder;    // of the evidence; empty: none is kept
  std::string evidence;  // "evidence on n1: FOLDER/hang-*.txt"; empty: none is kept
};
Hang hang_in(const nlohmann::json& report);

// Explains a job by its status and the failure report of one of its nodes (docs/report.md). report:
// null if there is none. A host made the report, so any member may be wrong. advice: the last line,
// if the place of the job has better advice than most.
Explanation explain_job(const KnownJob& job, const JobStatus& status, const nlohmann::json& report,
                        const std::string& advice = {});

// Adds the root cause, the hang and the other ranks of a job by the reports of its nodes.
void add_reports(const std::vector<nlohmann::json>& reports, Explanation& said);

// Explains a run by the file of its --report. Errors: corrupt (not a report).
Result<Explanation> explain_report(std::string_view text);

// Adds what the ranks of a running job do.
Explanation with_looks(Explanation said, const std::vector<looks::Answer>& answers);

// Print and read a host's answer about a job: an explanation, or an error. Another host made the
// answer, so its text is made printable.
std::string explanation_answer(const Result<Explanation>& said);
Result<Explanation> explanation_of(std::string_view answer);

}  // namespace lockstep::jobs
