#include "jobs/on_hosts/follow_output.h"

#include "codec/json.h"
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

Result<std::vector<OutputPlaces>> first_places(const FollowRequest& request,
                                               const hosts::RunCommand& run) {
  // An offset behind any output: the host then only reports the job's end.
  constexpr std::int64_t kBehindAll = std::numeric_limits<std::int64_t>::max() / 2;
  const std::size_t count = request.job.nodes.size();
  std::vector<OutputPlaces> places(count);
  if (!request.options.print) return std::vector<OutputPlaces>(count, {kBehindAll, kBehindAll});
  // Only the hosts know where their last lines begin.
  if (!request.options.lines) return places;
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(const auto endings,
                      run(loop, {.hosts = request.job.nodes,
                                 .argv = {"host-job", "places", request.job.id,
                                          std::to_string(*request.options.lines)},
                                 .own_binary = true,
                                 .input = hosts::CommandRequest::Input::none,
                                 .output = hosts::CommandRequest::Output::keep}));
  for (std::size_t i = 0; i < count; ++i) {
    const nlohmann::json answer = codec::parse_json(endings[i].out);
    // Without an answer the output begins at 0: too many lines are better than none.
    places[i] = {place_in(answer, "out"), place_in(answer, "err")};
  }
  return places;
}

FollowOutput::FollowOutput(io::Loop& loop, const FollowRequest& request, io::OwnStream out,
                           io::OwnStream err)
    : request_(request), out_(loop, std::move(out)), err_(loop, std::move(err)) {
  // Programs want each line. For a single rank nothing repeats.
  if (request.options.fold && !request.options.json && !request.options.rank) {
    folded_out_.emplace(loop, out_);
    folded_err_.emplace(loop, err_);
  }
  for (const hosts::HostPlace& node : request.job.nodes)
    nodes_.push_back({output(node.name, "stdout"), output(node.name, "stderr")});
}

FollowOutput::Output FollowOutput::output(const std::string& node, const char* stream) const {
  Output output{.form = {.rank = request_.options.rank, .json = request_.options.json}};
  if (output.form.json)
    output.form.before = hosts::log_line_head(node, stream);
  else if (request_.job.nodes.size() > 1)  // with one host the lines need no prefix
    output.form.before = node + ": ";
  return output;
}

// JSON objects of both outputs go to stdout, for one reading program.
hosts::HostOutput& FollowOutput::sink_of(link::Stream stream) {
  return stream == link::Stream::out || request_.options.json ? out_ : err_;
}

void FollowOutput::put(std::size_t node, link::Stream stream, std::string_view bytes,
                       std::function<void(std::size_t)> printed) {
  const bool out = stream == link::Stream::out;
  Output& output = out ? nodes_[node].out : nodes_[node].err;
  if (auto& folded = out ? folded_out_ : folded_err_)
    return folded->put(output.form.before, bytes, std::move(printed));
  // Otherwise the text of the host is what a person reads.
  if (!output.form.by_line())
    return sink_of(stream).put(output.form.before, bytes, std::move(printed));
  std::string text;
  output.lines.put(bytes, [&](const hosts::OutputLine& line) { text += output.form.text(line); });
  // Credit the bytes of the host, not of the text, whose form has another length.
  sink_of(stream).put_text(text, bytes.size(), std::move(printed));
}

void FollowOutput::end(std::size_t node) {
  for (const link::Stream stream : {link::Stream::out, link::Stream::err}) {
    const bool out = stream == link::Stream::out;
    Output& output = out ? nodes_[node].out : nodes_[node].err;
    if (auto& folded = out ? folded_out_ : folded_err_) folded->end(output.form.before);
    sink_of(stream).end(output.form.before);
    // put() has given credit for these bytes already.
    output.lines.take_rest([&](const hosts::OutputLine& line) {
      sink_of(stream).put_text(output.form.text(line), 0, [](std::size_t) {});
    });
  }
}

void FollowOutput::finish(std::function<void()> fn) {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    end(i);
  if (folded_out_) folded_out_->finish();
  if (folded_err_) folded_err_->finish();
  // The loop must not stop before a slow reader has taken both outputs.
  out_.when_idle([this, fn = std::move(fn)] { err_.when_idle(fn); });
}

}  // namespace lockstep::jobs::on_hosts
