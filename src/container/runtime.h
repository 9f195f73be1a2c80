// The programs that run a container, a row each: which images a program takes, the command that
// fetches an image, and the command that starts a container. Pure: the rows return words.
//
// Every row keeps what a job without a container has: the pids, the network, the name and /dev/shm
// of this machine, the user's numbers, and the environment. Values of variables never become words.
#pragma once

#include "base/error.h"
#include "container/image.h"
#include "container/mounts.h"

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::container {

using Words = std::vector<std::string>;

// The folder of our binary in the container.
inline constexpr std::string_view kFolderInside = "/run/lockstep/";
// The folder of the FIFO to the process outside. A mount of the user's may cover any other place.
inline constexpr std::string_view kTetherInside = "/run/lockstep/tether";

// Runs the command alone. enroot starts it instead of the image's script, which has the entrypoint.
inline constexpr std::string_view kScript = "exec \"$@\"\n";

// An entry of a folder, as bubblewrap needs it.
struct Entry {
  std::string name;
  bool folder = false;
  std::string link;  // the target of a link; empty: not a link
};

struct Devices {
  bool nvidia = false;      // /dev/nvidiactl exists
  bool nvidia_cdi = false;  // podman knows GPUs by a CDI file
  bool infiniband = false;  // /dev/infiniband exists
};

struct Request {
  std::string program;  // as found in PATH
  std::string image;    // a path, or a name that Fetch::name gave or that a command printed
  std::string name;     // of the container
  std::vector<Mount> mounts;
  std::vector<std::string> named;      // --container-env
  std::vector<std::string> variables;  // names of all variables that the job has
  std::vector<std::string> of_image;   // names of the variables that the image sets
  Devices devices;
  uid_t user = 0;
  gid_t group = 0;
  std::string binary;       // ours, on this machine
  Words command;            // what runs in the container; the first word is our binary's path there
  std::string script = {};  // a file with kScript, on this machine; for enroot alone
  // Lists a folder of this machine.
  std::function<std::vector<Entry>(const std::string& folder)> list;
};

// How an image gets onto this machine, once for all jobs. Without `get` the image must be here, and
// without `have` too it is.
struct Fetch {
  std::string image;      // what Request::image becomes, unless `id` is set
  Words have = {};        // succeeds if the image is here; empty: the file `image` exists then
  std::string line = {};  // a line that `have` then prints; empty: any output will do
  Words drop = {};        // removes the rest of an interrupted `get`; may fail
  Words import = {};      // runs before `get` and writes the file FetchRequest::scratch
  Words get = {};
  std::string file = {};  // the file that `get` unpacks into the runtime's storage; empty: none
  std::string part = {};  // the file that `get` writes, which becomes the file `image`; empty: none
  Words id = {};          // prints the id of the image, with the name that `get` has printed behind
};

struct FetchRequest {
  std::string program;
  Image image;
  std::string key;              // a name that no other image and no other node has
  std::string file;             // a path for a file of the runtime's, in a folder of Lockstep's
  std::string scratch = {};     // a path for a file of the fetch alone
  std::string known;            // Request::image when the image was fetched last; empty: never
  bool docker_archive = false;  // the archive has the form of `docker save`, not OCI's
};

struct Runtime {
  std::string_view name;
  std::string_view program;
  std::span<const ImageKind> takes;
  Fetch (*fetch)(const FetchRequest& request);
  Words (*start)(const Request& request);
  // Returns the command that prints the image's variables, one "NAME=VALUE" a line. nullptr: the
  // runtime lets the image win by itself, or the image has none.
  Words (*variables)(const std::string& program, const std::string& image) = nullptr;
  // Names of --container-env become variables of the runtime with this prefix. Empty: start() has
  // words for them.
  std::string_view prefix = {};
  // Returns the command that prints the folder of the runtime's storage. nullptr: the runtime
  // unpacks nothing.
  Words (*storage)(const std::string& program) = nullptr;
  // Mounts by a process of its own (FUSE), which stays if the program is killed.
  bool mounts_by_process = false;
};

// Returns all rows. For an image that several rows take, the first one found on a node is used.
std::span<const Runtime> runtimes();

// Returns the programs that can run the image. A node uses the first that its PATH has.
std::vector<std::string> programs_for(const Image& image);

struct Chosen {
  const Runtime* runtime = nullptr;
  std::string program;  // its path
  std::string why;      // for --explain
};
// Chooses the runtime. find: returns the path of a program in PATH, or an empty text. Errors:
// not_found, with the names of the programs that would do.
Result<Chosen> choose_runtime(const Image& image,
                              const std::function<std::string(std::string_view)>& find);

// Returns why a file of `size` bytes cannot be unpacked into the folder; empty: it may fit. free:
// bytes of the folder's file system that this user may fill.
std::string no_room(std::uint64_t size, std::uint64_t free, std::string_view folder);

// Returns the name that `podman load` or `docker load` has printed; empty: none.
std::string loaded_name(std::string_view output);

// Returns whether this is a name that every shell takes.
bool is_variable_name(std::string_view name);

// Returns whether the variable describes the software of this machine, and therefore stays outside
// unless --container-env names it.
bool stays_outside(std::string_view variable);

}  // namespace lockstep::container
