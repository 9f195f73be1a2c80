// A job for the tests of this room.
#pragma once

#include "top/job_rows.h"

#include <string>
#include <utility>
#include <vector>

namespace lockstep::top {

inline looks::RankRow row_at(int rank, const std::string& state, const std::string& where,
                             const std::string& node = "n1") {
  looks::RankRow row{.rank = rank, .node = node, .pid = 1000 + rank, .state = state};
  row.where = where;
  row.cpu = 1;
  row.memory_bytes = std::int64_t{1} << 30;
  return row;
}

inline JobRows job_of(std::vector<looks::RankRow> rows) {
  looks::NodeRows node{.node = "n1", .command = "/home/u/train.py", .attempt = 1};
  node.world = static_cast<int>(rows.size());
  node.state = "training";
  node.words = "training";
  node.rows = std::move(rows);
  return {.id = "pid-7", .name = "-", .place = "this machine", .state = "running", .nodes = {node}};
}

// `count` ranks that wait for rank 1, which sleeps.
inline JobRows waiting_job(int count) {
  std::vector<looks::RankRow> rows;
  for (int rank = 0; rank < count; ++rank) {
    rows.push_back(row_at(rank, "waiting", "step, train.py:88"));
    rows.back().doing = "all_reduce";
  }
  rows[1] = row_at(1, "hung", "collate, data.py:41");
  JobRows job = job_of(std::move(rows));
  job.nodes[0].state = "hung";
  job.nodes[0].words = "hung: no rank has run for 31 s";
  return job;
}

}  // namespace lockstep::top
