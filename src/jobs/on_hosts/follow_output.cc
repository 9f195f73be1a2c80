#include "jobs/on_hosts/follow_output.h"

#include "codec/json.h"
#include "hosts/command_run.h"
#include "hosts/log_lines.h"

#include <limits>
#include <utility>

namespace lockstep::jobs::on_hosts {
namespace {

std::int64_t place_in(const nlohmann::json& answer, const char* name) {
  if (!answer.is_object()) return 0;
  const auto at = answer.find(name);
  return at != answer.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

}  // namespace

Result<std::vector<OutputPlaces>> first_places(const FollowRequest& request) {
  // An offset behind any output: the host then only reports the job's end.
  constexpr std::int64_t kBehindAll = std::numeric_limits<std::int64_t>::max() / 2;
  const std::size_t count = request.job.nodes.size();
  std::vector<OutputPlaces> places(count);
  if (!request.options.print) return std::vector<OutputPlaces>(count, {kBehindAll, kBehindAll});
  // Only the hosts know where their last lines begin.
  if (!request.options.lines) return places;
  LOCKSTEP_TRY_ASSIGN(const auto endings,
                      hosts::run_command({.hosts = request.job.nodes,
                                          .argv = {"host-job", "places", request.job.id,
                                                   std::to_string(*request.options.lines)},
                                          .own_binary = true,
                                          .input = hosts::CommandRequest::Input::none,
                                          .output = hosts::CommandRequest::Output::keep}));
  for (std::size_t i = 0; i < count; ++i) {
    const nlohmann::json answer = codec::parse_json(endings[i].out);
    places[i] = {place_in(answer, "out"), place_in(answer, "err")};
  }
  return places;
}

FollowOutput::FollowOutput(io::Loop& loop, const FollowRequest& request, io::OwnStream out,
                           io::OwnStream err)
    : request_(request),
      out_(loop, std::move(out), line_text()),
      err_(loop, std::move(err), line_text()) {
  if (request.options.fold && !request.options.json && !request.options.rank) {
    folded_out_.emplace(loop, out_);
    folded_err_.emplace(loop, err_);
  }
  for (const hosts::HostPlace& node : request.job.nodes)
    prefixes_.push_back(prefixes_of(node.name));
}

hosts::HostOutput::LineText FollowOutput::line_text() const {
  if (!request_.options.rank && !request_.options.json) return {};
  const std::string prefix =
      request_.options.rank ? hosts::rank_prefix(*request_.options.rank) : "";
  // An empty text drops the line: it is another rank's.
  return [prefix, json = request_.options.json](std::string_view line) {
    if (!line.starts_with(prefix)) return std::string();
    return json ? hosts::log_line_rest(line) : std::string(line);
  };
}

FollowOutput::Prefixes FollowOutput::prefixes_of(const std::string& name) const {
  if (request_.options.json)
    return {hosts::log_line_head(name, "stdout"), hosts::log_line_head(name, "stderr")};
  // With one host the lines need no prefix.
  if (request_.job.nodes.size() > 1) return {name + ": ", name + ": "};
  return {};
}

// JSON objects of both outputs go to stdout, for one reading program.
hosts::HostOutput& FollowOutput::output_of(link::Stream stream) {
  return stream == link::Stream::out || request_.options.json ? out_ : err_;
}

void FollowOutput::put(std::size_t node, link::Stream stream, std::string_view bytes,
                       std::function<void(std::size_t)> printed) {
  const Prefixes& prefixes = prefixes_[node];
  const bool out = stream == link::Stream::out;
  auto& folded = out ? folded_out_ : folded_err_;
  if (folded) return folded->put(out ? prefixes.out : prefixes.err, bytes, std::move(printed));
  output_of(stream).put(out ? prefixes.out : prefixes.err, bytes, std::move(printed));
}

void FollowOutput::end(std::size_t node) {
  if (folded_out_) folded_out_->end(prefixes_[node].out);
  if (folded_err_) folded_err_->end(prefixes_[node].err);
  output_of(link::Stream::out).end(prefixes_[node].out);
  output_of(link::Stream::err).end(prefixes_[node].err);
}

void FollowOutput::finish(std::function<void()> fn) {
  for (std::size_t i = 0; i < prefixes_.size(); ++i)
    end(i);
  if (folded_out_) folded_out_->finish();
  if (folded_err_) folded_err_->finish();
  out_.when_idle([this, fn = std::move(fn)] { err_.when_idle(fn); });
}

}  // namespace lockstep::jobs::on_hosts
