#include "link/host_rules.h"

#include <algorithm>
#include <variant>

namespace lockstep::link {
namespace {

std::size_t place(Stream stream) {
  return static_cast<std::size_t>(stream);
}

}  // namespace

void HostRules::sent(const Frame& frame) {
  std::visit([this](const auto& content) { note(content); }, frame);
}

void HostRules::note(const Start& start) {
  // The client chooses channel numbers. A host that names another channel is broken or hostile.
  channels_[start.channel] = Channel{.result = start.result};
}

void HostRules::note(const Data& data) {
  const auto at = channels_.find(data.channel);
  if (at != channels_.end()) at->second.input += data.bytes.size();
}

void HostRules::note(const Credit& credit) {
  const auto at = channels_.find(credit.channel);
  if (at == channels_.end()) return;
  std::size_t& room = at->second.room[place(credit.stream)];
  // The host's end caps its credit alike (Source::grant()).
  room = std::min(room + credit.bytes, kWindow);
}

void HostRules::note(const Ping& /*ping*/) {
  ++pings_;
}

HostRules::Verdict HostRules::judge(const Frame& frame) {
  if (!greeted_ && !std::holds_alternative<Hello>(frame)) return refuse("a frame before 'hello'");
  return std::visit([this](const auto& content) { return on(content); }, frame);
}

HostRules::Verdict HostRules::refuse(std::string_view why) {
  why_ = why;
  return Verdict::refuse;
}

HostRules::Channel* HostRules::running(std::uint32_t channel) {
  const auto at = channels_.find(channel);
  return at == channels_.end() || !at->second.started ? nullptr : &at->second;
}

HostRules::Verdict HostRules::on(const Hello& /*hello*/) {
  if (greeted_) return refuse("a second 'hello'");
  greeted_ = true;
  return Verdict::take;
}

HostRules::Verdict HostRules::on(const Started& started) {
  const auto at = channels_.find(started.channel);
  if (at == channels_.end() || at->second.started) return refuse("'started' without a request");
  at->second.started = true;
  return Verdict::take;
}

HostRules::Verdict HostRules::on(const Refused& refused) {
  const auto at = channels_.find(refused.channel);
  if (at == channels_.end() || at->second.started) return refuse("'refused' without a request");
  channels_.erase(at);
  return Verdict::take;
}

HostRules::Verdict HostRules::on(const Exit& exit) {
  if (running(exit.channel) == nullptr) return refuse("'exit' without a running program");
  channels_.erase(exit.channel);
  return Verdict::take;
}

// Refuses empty Data: empty frames use no credit, so a flood would have no limit.
HostRules::Verdict HostRules::on(const Data& data) {
  Channel* channel = running(data.channel);
  if (channel == nullptr) return refuse("output without a running program");
  if (data.bytes.empty()) return refuse("an empty piece of output");
  if (data.stream == Stream::in || (data.stream == Stream::result && !channel->result))
    return refuse("output without a request");
  std::size_t& room = channel->room[place(data.stream)];
  if (data.bytes.size() > room) return refuse("more output than the credit allows");
  room -= data.bytes.size();
  return Verdict::take;
}

HostRules::Verdict HostRules::on(const Eof& eof) {
  if (running(eof.channel) == nullptr || eof.stream == Stream::in)
    return refuse("the end of output without a request");
  return Verdict::take;
}

// The host may report input as read just after the program's end: drop that.
HostRules::Verdict HostRules::on(const Credit& credit) {
  Channel* channel = running(credit.channel);
  if (channel == nullptr) return Verdict::drop;
  if (credit.stream != Stream::in || credit.bytes > channel->input)
    return refuse("credit for input never sent");
  channel->input -= credit.bytes;
  return Verdict::take;
}

HostRules::Verdict HostRules::on(const Ping& /*ping*/) {
  return Verdict::drop;  // only clients ask
}

HostRules::Verdict HostRules::on(const Pong& /*pong*/) {
  if (pings_ == 0) return refuse("'pong' without a 'ping'");
  --pings_;
  return Verdict::take;
}

}  // namespace lockstep::link
