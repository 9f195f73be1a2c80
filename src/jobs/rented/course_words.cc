#include "jobs/rented/course_words.h"

#include "base/last_line.h"
#include "cloud/journal.h"
#include "hosts/registry.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "jobs/rented/course_log.h"
#include "jobs/rented/rented_state.h"
#include "jobs/rented/stream_text.h"
#include "rent/job_claim.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

namespace lockstep::jobs::rented {
namespace {

constexpr std::size_t kMostShown = 256UL << 20;
constexpr std::chrono::hours kLogsKept{30 * 24};

bool is_rented(const std::string& cluster) {
  auto journal = cloud::Journal::open(io::state_folder());
  return journal && journal->of_cluster(cluster);
}

// Returns the cluster's name if the file name is that of such a log or of a part of it.
std::optional<std::string> cluster_of_log(const std::string& file) {
  for (const std::string_view ending : rent::kFollowLogEndings)
    if (file.size() > ending.size() && file.ends_with(ending))
      return file.substr(0, file.size() - ending.size());
  return std::nullopt;
}

}  // namespace

std::optional<CourseWords> words_of_course(std::string word, const Result<KnownJob>& newest,
                                           std::optional<std::int64_t> lines) {
  const auto courses = courses_here();
  const cloud::RentedJob* const its_course = newest ? course_of(*newest, courses) : nullptr;
  if (its_course != nullptr) word = its_course->cluster;
  if (!hosts::check_cluster_name(word)) return std::nullopt;
  const auto written = log_written_ms(word);
  if (!written) return std::nullopt;
  if (newest && (newest->id == word || newest->name == word) &&
      (newest->place != word || newest->created_ms > *written))
    return std::nullopt;
  CourseWords said{.text = {}, .path = rent::follow_log(word)};
  for (const cloud::RentedJob& job : courses) {
    if (job.cluster != word || !job.goes_on() || !is_rented(word)) continue;
    if (job.stage == cloud::RentedJob::Stage::working && !job.job.empty()) return std::nullopt;
    said.goes_on = true;
    said.awaited = &job == its_course;
  }
  for (const std::string& part : rent::follow_logs(word))
    if (const auto bytes = io::read_file(part, kMostShown)) said.text += plain_text(*bytes);
  if (lines) said.text = std::string(last_lines(said.text, *lines));
  return said;
}

void drop_old_logs(const std::vector<cloud::Rental>& open, std::int64_t now_ms) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const std::int64_t old = now_ms - std::chrono::milliseconds(kLogsKept).count();
  for (fs::directory_iterator at(io::state_folder() + "/rentals", failed), end;
       !failed && at != end; at.increment(failed)) {
    const fs::path& path = at->path();
    // The folder also has the locks of all past clusters: skip those.
    const auto cluster = cluster_of_log(path.filename());
    if (!cluster) continue;
    const bool is_open = std::any_of(open.begin(), open.end(),
                                     [&](const auto& rental) { return rental.cluster == cluster; });
    // The beginning of a long log is old, but stays as long as its end.
    const auto written = log_written_ms(*cluster);
    std::error_code error;
    if (!is_open && written && *written < old) fs::remove(path, error);
  }
}

}  // namespace lockstep::jobs::rented
