#include "place.h"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state.h"

namespace va::node {
namespace {

std::string variable(const char *name) {
  const char *const value = std::getenv(name);
  return value ? value : "";
}

std::string user_folder() {
  const std::string home = variable("HOME");
  if (!home.empty())
    return home;
  char buffer[1024];
  passwd entry, *found = nullptr;
  if (!getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &found) && found && found->pw_dir)
    return found->pw_dir;
  return P_tmpdir;
}

} // namespace

std::string home_folder() {
  std::string folder = variable("VA100_HOME");
  if (folder.empty()) {
    const std::string state = variable("XDG_STATE_HOME");
    folder = (state.empty() || state[0] != '/' ? user_folder() + "/.local/state" : state) + "/va100";
  }
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  return folder;
}

std::string path_of(const std::string &node) { return home_folder() + "/nodes/" + node + ".node"; }

std::string chosen_node() { return variable("VA100_NODE"); }

bool is_node_name(const std::string &name) {
  if (name.empty() || name.size() >= kNameBytes || name[0] == '.' || name[0] == '-')
    return false;
  for (const char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_')
      return false;
  return true;
}

bool make_folder_for(const std::string &path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (mkdir(path.substr(0, at).c_str(), 0777) && errno != EEXIST)
      return false;
  return true;
}

} // namespace va::node
