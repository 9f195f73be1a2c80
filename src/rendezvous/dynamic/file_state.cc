#include "rendezvous/dynamic/file_state.h"

#include "rendezvous/dynamic/state_codec.h"

#include <utility>

namespace lockstep::rendezvous::dynamic {
namespace {

Failure vanished(const std::string& path) {
  return fail(Errc::unavailable, "the rendezvous state has vanished from " + path);
}

}  // namespace

FileState::FileState(file_store::FileStore& store, std::string_view run_id)
    : store_(store), key_("torch.rendezvous." + std::string(run_id)) {}

void FileState::read(Done<Stored> done) {
  const auto made = calls_([this, done](const Result<std::string>& text) {
    if (!text) return done(tl::make_unexpected(text.error()));
    seen_ = true;
    done(Stored{.text = *text, .token = *text});
  });
  store_.probe(key_, calls_([this, made, done](const Result<std::optional<std::string>>& found) {
                 if (!found) return done(tl::make_unexpected(found.error()));
                 if (*found) return made(**found);
                 // The key existed before, so the file was deleted or replaced. Fail instead of
                 // starting over as if there had never been a rendezvous.
                 if (seen_) return done(vanished(store_.path()));
                 store_.compare_set(key_, "", kNoState, made);
               }));
}

void FileState::write(const Stored& before, const std::string& text, Done<Stored> done) {
  store_.compare_set(key_, before.token, text,
                     calls_([this, done = std::move(done), token = before.token,
                             text](const Result<std::string>& stored) {
                       if (!stored) return done(tl::make_unexpected(stored.error()));
                       // PyTorch answers a compare_set of a missing key with the expected value.
                       if (*stored == token && *stored != text)
                         return done(vanished(store_.path()));
                       done(Stored{.text = *stored, .token = *stored, .written = *stored == text});
                     }));
}

}  // namespace lockstep::rendezvous::dynamic
