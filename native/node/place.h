// Where nodes are kept and which one this process is to use.
#pragma once

#include <string>

namespace va::node {

// VA100_HOME, else the user's state folder; ends without a slash.
std::string home_folder();
std::string path_of(const std::string &node);
// VA100_NODE; empty: none.
std::string chosen_node();
// Letters, digits, dots, dashes, underscores; the first one no dot.
bool is_node_name(const std::string &name);
// Make the folder that a file goes into.
bool make_folder_for(const std::string &path);

} // namespace va::node
