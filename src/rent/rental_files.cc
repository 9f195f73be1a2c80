#include "rent/rental_files.h"

#include "cloud/key_pair.h"
#include "io/fd.h"
#include "io/own_folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::rent {

std::string rental_folder(const std::string& cluster) {
  return io::state_folder() + "/rentals/" + cluster;
}

std::string user_key_file(const std::string& cluster) {
  return rental_folder(cluster) + "/user_key";
}

std::string host_key_file(const std::string& cluster) {
  return rental_folder(cluster) + "/host_key";
}

std::string used_file(const std::string& cluster) {
  return rental_folder(cluster) + "/used";
}

void note_use(const std::string& cluster) {
  const std::string path = used_file(cluster);
  const io::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file) (void)futimens(file.get(), nullptr);
}

void remove_rental_files(const std::string& cluster) {
  cloud::remove_key_pair(user_key_file(cluster));
  cloud::remove_key_pair(host_key_file(cluster));
  unlink(used_file(cluster).c_str());
  rmdir(rental_folder(cluster).c_str());
}

}  // namespace lockstep::rent
