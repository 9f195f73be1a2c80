// The requests that a client sends for jobs on this host, by `lockstep host-job`.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::job {

enum class Verb {
  start,
  follow,
  print,
  places,
  status,
  report,
  rows,
  looks,
  ranks,
  events,
  page,
  profile,
  profile_trace,
  cancel
};
// Returns the verb of a request. nullopt: its first word is none.
std::optional<Verb> verb_of(const std::vector<std::string>& words);

// Serves one request over stdin and stdout and returns the exit code. words: start | follow ID OUT
// ERR | print ID OUT ERR | places ID LINES | status [ID...] | report ID [ROW] | rows ID | looks ID
// [QUESTION] | ranks ID | events ID [AFTER] | page ID NODE | profile ID QUERY | profile-trace ID
// FOLDER PROFILE RANK | cancel ID. `looks`, `ranks`, `events`, `page` and `profile` print a JSON
// list of what the agents answer (looks/answer.h, looks/row.h, status/event_ring.h,
// page/page_answer.h, status/profile_answer.h), `events` also the report of an ended job. Their ID
// may be "ID[12]": the agents of row 12 of a sweep. `report` prints the failure report of the job,
// or of a row. QUESTION:
// "rank=3&native" (looks/question.h). QUERY: "do=look&id=7" (status/profile_answer.h). `rows`
// prints what is recorded of a sweep's rows on this host (rows/row_book.h). `profile-trace` prints
// the finished trace of a rank. `follow` returns when the job ends; `status` tells how it ended.
Result<int> serve_request(const std::vector<std::string>& words);

// Returns what the agents on this machine answer to `looks`, `ranks`, `events`, `page` or
// `profile`: the list that serve_request() prints, without reports of ended jobs.
Result<std::string> ask_agents_here(const std::vector<std::string>& words);

}  // namespace lockstep::job
