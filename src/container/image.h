// The image of --container as the user wrote it, and what kind of image that is. Pure, except for
// the two questions that the caller answers.
#pragma once

#include "base/error.h"

#include <functional>
#include <string>
#include <string_view>

namespace lockstep::container {

enum class ImageKind {
  folder,     // the root of a system: a debootstrap folder, an unpacked image
  archive,    // a tar file by `podman save`, `docker save` or `buildah push`
  sif,        // apptainer's file
  squashfs,   // enroot's file
  registry,   // docker://HOST/NAME:TAG
  local_name  // NAME[:TAG] in the storage of podman or docker
};

struct Image {
  ImageKind kind = ImageKind::folder;
  std::string text;   // as the user wrote it, for messages
  std::string place;  // an absolute path, or the name with its registry
};

enum class PathKind { missing, file, folder, other };  // other: a FIFO, a device
// Answers for an absolute path. Follows links.
using AskPath = std::function<PathKind(const std::string& path)>;

// Reads the value of --container. folder: the working folder, which relative paths begin at.
// Errors: invalid_input, not_found.
Result<Image> read_image(std::string_view text, const std::string& folder, const AskPath& ask);

// Returns the kind in words: "a folder", "an archive".
std::string_view kind_words(ImageKind kind);

}  // namespace lockstep::container
