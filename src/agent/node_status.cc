// NodeAgent, views: events, metrics and health for those who watch. Decides nothing.
#include "agent/clock_ms.h"
#include "agent/node_agent.h"
#include "launch/backend_row.h"

namespace lockstep::agent {

void NodeAgent::emit(const std::string& state, const Worker* worker,
                     std::optional<double> duration_ms) {
  if (config_.event_handler == launch::EventHandler::null) return;
  status::Event event;
  event.state = state;
  event.source = worker == nullptr ? status::Event::Source::agent : status::Event::Source::worker;
  event.run_id = config_.run_id;
  event.role = config_.role;
  event.hostname = node_name_;
  event.group_rank = round_.group_rank;
  event.group_world_size = round_.group_world_size;
  event.rdzv_backend = config_.backend->name;
  event.entry_point = config_.entrypoint;
  event.agent_restarts = config_.max_restarts - group_.remaining_restarts();
  event.duration_ms = duration_ms;
  event.total_run_time_s =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now() - started_)
          .count();
  if (worker != nullptr) {
    status::Event::Worker about;
    about.global_rank = worker->spec.rank;
    about.local_rank = worker->spec.local_rank;
    about.role_rank = round_.role_base_rank + worker->spec.local_rank;
    about.role_world_size = round_.role_world_size;
    about.pid = worker->child->pid();
    about.id = std::to_string(worker->child->pid());
    if (worker->child->exit()) about.exit_code = worker->child->exit()->python_code();
    if (state == "FAILED" && !worker->error_file.empty())
      if (const auto record = read_error_file(worker->error_file)) event.raw_error = record->bytes;
    event.worker = about;
  }
  console_.write(logs::Stream::err, status::event_json(event) + "\n");
}

status::Metrics NodeAgent::metrics() const {
  status::Metrics m;
  m.run_id = config_.run_id;
  m.role = config_.role;
  m.node = node_name_;
  m.workers_running = group_.live();
  m.workers_expected = config_.nproc;
  m.attempts_total = attempts_;
  m.restarts_total = config_.max_restarts - group_.remaining_restarts();
  m.failures_total = failures_total_;
  m.restarts_remaining = group_.remaining_restarts();
  m.world_size = round_.world_size;
  m.group_rank = round_.group_rank;
  m.start_time_s = std::chrono::duration<double>(started_.time_since_epoch()).count();
  return m;
}

http::Response NodeAgent::health() const {
  const bool healthy = !group_.stop_ordered() && group_.state() != State::finished;
  return {healthy ? 200 : 503, "text/plain; charset=utf-8",
          healthy ? "ok\n" : "stopping workers\n"};
}

}  // namespace lockstep::agent
