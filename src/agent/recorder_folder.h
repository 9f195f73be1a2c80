// The folder in which the workers of an attempt open their pipes (PyTorch's NCCL backend) and write
// the dumps of their flight recorders. The workers make the pipes, and a worker whose folder is
// missing dies, so the folder must be there before they start and until they have ended.
#pragma once

#include "agent/worker_spec.h"
#include "base/error.h"
#include "io/fd.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::agent {

class RecorderFolder {
 public:
  // Takes the folder of the attempt's logs. If that is on a file server, makes one (0700) in the
  // folder for temporary files: the agent reads dumps on its event loop, which must not wait for a
  // server. Fails also if the file system has no pipes.
  static Result<RecorderFolder> make(const std::string& attempt_dir);

  const std::string& path() const { return path_; }

  // Makes the folder of --aid, too (agent/aid_folder.h).
  Status add_aid();
  const std::string& aid() const { return aid_; }  // "": none
  // Connects to the control plane of a rank, without ever waiting. Fails with Errc::timeout if the
  // rank does not accept connections. Any other failure: the rank has no control plane.
  Result<io::Fd> dial(int rank) const;

  // Asks a rank for a dump, without ever waiting. Returns false if no process reads its pipe: the
  // rank has no NCCL backend, or has not made it yet.
  bool ask(int rank) const;
  // Moves a dump aside that was written without a request: PyTorch writes one when a collective
  // times out. The file stays.
  void set_aside(int rank) const;

  // The state of the dump's file. nullopt: no dump.
  struct State {
    std::size_t bytes = 0;
    std::uint64_t changed = 0;  // differs after a write

    friend bool operator==(const State&, const State&) = default;
  };
  std::optional<State> look(int rank) const;
  // Reads a dump of at most `limit` bytes.
  Result<std::string> read(int rank, std::size_t limit) const;
  // The dump has been read. The file stays until the next one, or until keep().
  void done(int rank) const;
  // Does the same for a dump that came through a socket.
  void done(int rank, std::string_view bytes) const;
  // Keeps the dumps that were read last under names for PyTorch's own tools: PREFIX and the rank.
  // Returns the prefix. "": there is none.
  std::string keep(const std::string& name) const;

  // Call after all workers have ended. Removes the pipes and the dumps that nobody needs, and an
  // empty folder that make() has made. Returns whether dumps are left that PyTorch wrote by itself.
  bool remove() const;

 private:
  RecorderFolder(std::string path, bool temporary)
      : path_(std::move(path)), temporary_(temporary) {}
  std::string file(const char* stem, int rank) const;

  std::string path_;
  bool temporary_;
  std::string aid_;
};

}  // namespace lockstep::agent
