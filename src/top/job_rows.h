// The rows of a whole job, and the lines that a table shows of them: ranks that are alike are one
// line. Pure.
#pragma once

#include "base/error.h"
#include "looks/row.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::top {

struct JobRows {
  std::string id = {};
  std::string name = {};
  std::string place = {};  // "this machine", "gpus"
  std::string state = {};  // a word of jobs/job_status.h
  std::vector<looks::NodeRows> nodes = {};
};

std::string job_rows_json(const JobRows& job);
// Reads what job_rows_json() prints. Texts become printable: a host may have made them. Fails with
// Errc::corrupt.
Result<JobRows> read_job_rows(std::string_view json);

std::size_t count_ranks(const JobRows& job);
const looks::RankRow* find_rank(const JobRows& job, int rank);  // nullptr: no such rank

// A line of the table. Of several ranks, `row` has the means of the numbers, and the newest output.
struct Line {
  std::vector<int> ranks = {};          // sorted
  std::vector<std::string> nodes = {};  // in the order of the job
  looks::RankRow row = {};
};

enum class Sort { rank, node, state, wait, input, cpu, memory, gpu, output, step };
inline constexpr std::array<std::string_view, 10> kSortWords = {
    "rank", "node", "state", "wait", "input", "cpu", "memory", "gpu", "output", "step"};

struct LineRules {
  Sort sort = Sort::rank;
  std::string filter = {};  // a part of a text of the row, or the number of a rank. "": all
  bool folds = true;
};

// Numbers are sorted from high to low, except for ranks; states from the most to the least urgent.
std::vector<Line> lines_of(const JobRows& job, const LineRules& rules);

}  // namespace lockstep::top
