#include "jobs/row_why.h"

#include "base/text.h"
#include "codec/json_members.h"

#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace lockstep::jobs {
namespace {

constexpr std::size_t kMostText = 500;  // of one text of a row

// Hosts made the texts of a row.
std::string text_of(const nlohmann::ordered_json& row, const char* name) {
  return printable(codec::text_member(row, name), kMostText);
}

std::string values_text(const nlohmann::ordered_json& row) {
  std::string text;
  for (const auto& [name, value] : row["values"].items())
    text += fmt::format(" {}={}", name, printable(value.get<std::string>(), kMostText));
  return text;
}

std::string course_text(const nlohmann::ordered_json& row) {
  if (!row.contains("host")) return {};
  std::string text = "  on " + text_of(row, "host");
  if (const auto tries = codec::integer_member(row, "tries"); tries > 1)
    text += fmt::format(", try {}", tries);
  if (row.contains("seconds")) text += fmt::format(", {:.1f} s", row["seconds"].get<double>());
  text += "\n";
  if (row.contains("step"))
    text += fmt::format("  step {}: {}\n", codec::integer_member(row, "step"),
                        text_of(row, "step_line"));
  if (row.contains("last_line")) text += fmt::format("reason: {}\n", text_of(row, "last_line"));
  return text;
}

}  // namespace

Explanation explain_row(const KnownJob& job, const nlohmann::ordered_json& row,
                        const std::vector<nlohmann::json>& reports) {
  const std::int64_t number = codec::integer_member(row, "row");
  const std::string state = codec::text_member(row, "state");
  Explanation said;
  said.json = {{"id", job.id}, {"name", job.name}, {"on", job.place}, {"root_cause", nullptr}};
  said.json.update(row);
  said.text = fmt::format(
      "row {} of job {} ({}) on {}: {}{}\n ", number, job.id, printable(job.name, 100),
      printable(job.place, 100), state,
      state == "failed" ? fmt::format(" ({})", codec::integer_member(row, "code")) : std::string());
  said.text += values_text(row) + "\n" + course_text(row);
  add_reports(reports, said);
  said.advice_at = said.text.size();
  said.text += row.contains("host")
                   ? fmt::format("lockstep logs '{}[{}]' shows the output\n", job.id, number)
                   : fmt::format("lockstep why {} shows the other rows\n", job.id);
  return said;
}

Result<Explanation> why_row(Job& job, std::size_t row) {
  LOCKSTEP_TRY_ASSIGN(const Explanation whole, job.why());
  const auto rows = whole.json.find("rows");
  // The record of the rows is on the hosts, and rented machines may be gone.
  if (rows == whole.json.end())
    return fail(
        Errc::unavailable,
        fmt::format("the machines with the rows of job {} are not there now", job.record().id),
        fmt::format("lockstep why {} shows the state of the job", job.record().id));
  LOCKSTEP_TRY_ASSIGN(const auto sweep, sweep_of(job.record()));
  const auto kept = rows_of_plan(job.record().plan);
  for (const auto& known : *rows) {
    if (codec::integer_member(known, "row") != static_cast<std::int64_t>(row)) continue;
    const std::string state = codec::text_member(known, "state");
    const std::string host = codec::text_member(known, "host");
    const bool asks = state == "failed" && !kept;
    Explanation said = explain_row(
        job.record(), known, asks ? job.row_reports(row, host) : std::vector<nlohmann::json>());
    // The machines have taken the reports and the output along.
    if (sweep && kept) {
      said.text.resize(said.advice_at);
      if (state != "done") said.text += again_words(*sweep, *kept) + "\n";
      return said;
    }
    if (state != "running") return said;
    const auto answers = job.row_looks(row, host);
    if (answers) return with_looks(std::move(said), *answers);
    said.text.insert(said.advice_at,
                     fmt::format("what its ranks do is not known: {}\n", answers.error().message));
    return said;
  }
  return fail(Errc::unavailable,
              fmt::format("nothing is known of row {} of job {}", row, job.record().id));
}

}  // namespace lockstep::jobs
