// One rank in full, as lines of text. Pure.
#pragma once

#include "top/job_rows.h"

#include <string>
#include <vector>

namespace lockstep::top {

// threads: what `lockstep why --rank` says, "" if not known yet.
std::vector<std::string> rank_page(const looks::RankRow& row, const std::string& threads);

}  // namespace lockstep::top
