// What `lockstep logs NAME` shows of a job on rented machines once its machines cannot be asked.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "jobs/job_book.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::rented {

struct CourseWords {
  std::string text;  // both streams
  std::string path;
  bool goes_on = false;  // more output may come
  bool awaited = false;  // a follower of `newest` gets that output
};
// Returns the log of the course of that cluster's job, all or the last lines. word: the cluster, or
// a job with a course. nullopt: there is no log, or the job's machines can be asked. Also nullopt
// if `newest`, the other meaning of the word, runs elsewhere or is newer.
std::optional<CourseWords> words_of_course(std::string word, const Result<KnownJob>& newest,
                                           std::optional<std::int64_t> lines);

// Removes courses' logs last written more than 30 days ago, unless the cluster is still rented.
void drop_old_logs(const std::vector<cloud::Rental>& open, std::int64_t now_ms);

}  // namespace lockstep::jobs::rented
