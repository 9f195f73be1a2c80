#include "jobs/on_slurm/login_job.h"

#include "base/last_line.h"
#include "base/log.h"
#include "base/text.h"
#include "jobs/agent_answers.h"
#include "jobs/on_hosts/ask_hosts.h"
#include "jobs/on_slurm/node_way.h"
#include "jobs/on_slurm/slurm_job.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"

#include <utility>

namespace lockstep::jobs::on_slurm {
namespace {

constexpr std::size_t kMostError = 1000;

}  // namespace

PlaceFacts LoginJob::facts() const {
  return {.number = place_.job, .output = place_.output};
}

Result<std::string> LoginJob::ask_login(const std::string& verb,
                                        const std::vector<std::string>& more) {
  io::Loop loop;
  hosts::CommandRequest request = on_hosts::about_job(record_.nodes, verb, record_.id);
  request.argv.insert(request.argv.end(), more.begin(), more.end());
  LOCKSTEP_TRY_ASSIGN(auto endings, world_.run(loop, request));
  if (const int number = proc::SignalWatch::take_stop(); number != 0)
    return Failure(Error{Errc::canceled, "stopped by " + proc::signal_name(number), {}, number});
  hosts::HostEnding& ending = endings.at(0);
  if (!ending.error.empty()) return fail(Errc::unavailable, ending.error);
  const std::string& login = record_.nodes.at(0).name;
  if (ending.code != 0)
    return fail(Errc::not_found, login + ": " + printable(last_line(ending.err), kMostError));
  // Of the nodes that have not answered.
  if (!ending.err.empty())
    log::warning("{}: {}", login, printable(last_line(ending.err), kMostError));
  return std::move(ending.out);
}

Result<Explanation> LoginJob::why() {
  LOCKSTEP_TRY_ASSIGN(const std::string answer, ask_login("report"));
  auto said = explanation_of(answer);
  if (!said && said.error().code == Errc::corrupt)
    said.error().message = record_.nodes.at(0).name + ": " + said.error().message;
  return said;
}

Result<std::vector<PageThere>> LoginJob::page(int node) {
  LOCKSTEP_TRY_ASSIGN(const std::string answer, ask_login("page", {std::to_string(node)}));
  std::vector<page::PageAnswer> answers;
  add_answers(answers, agent_texts(answer), page::read_page_answer);
  std::vector<PageThere> found;
  for (page::PageAnswer& each : answers) {
    LOCKSTEP_TRY_ASSIGN(auto link, link_through_login(record_.id, each.place));
    found.push_back({.link = std::move(link), .page = std::move(each)});
  }
  return found;
}

Result<Resumed> LoginJob::resume(const std::vector<std::string>& env) {
  (void)env;
  return only_slurm_resumes(place_.job);
}

}  // namespace lockstep::jobs::on_slurm
