#include "slurm/job_report.h"

#include <algorithm>

namespace lockstep::slurm {
namespace {

bool is_number(std::string_view text) {
  // Slurm's ids fit into 32 bits.
  return !text.empty() && text.size() <= 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool is_job_id(std::string_view text) {
  const std::size_t part = text.find_first_of("_+");
  if (part == std::string_view::npos) return is_number(text);
  return is_number(text.substr(0, part)) && is_number(text.substr(part + 1));
}

std::string_view whole_job(std::string_view id) {
  return id.substr(0, id.find_first_of("_+"));
}

}  // namespace lockstep::slurm
