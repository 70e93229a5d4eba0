# Finds Arrow C++ and Parquet C++ 26 and offers them as Arrow::core and Arrow::parquet.
# First the system's packages; where there are none, the pyarrow wheel of the project's .venv
# (its headers and versioned libraries), found through GREBE_PYARROW_DIR.

find_package(Arrow 26 QUIET)
find_package(Parquet 26 QUIET)
if(Arrow_FOUND AND Parquet_FOUND)
  add_library(Arrow::core INTERFACE IMPORTED)
  target_link_libraries(Arrow::core INTERFACE Arrow::arrow_shared)
  add_library(Arrow::parquet INTERFACE IMPORTED)
  target_link_libraries(Arrow::parquet INTERFACE Parquet::parquet_shared)
else()
  if(NOT GREBE_PYARROW_DIR)
    file(GLOB _pyarrow ${CMAKE_CURRENT_SOURCE_DIR}/.venv/lib/python3*/site-packages/pyarrow)
    list(GET _pyarrow 0 _pyarrow)
    set(GREBE_PYARROW_DIR ${_pyarrow} CACHE PATH "Folder of the pyarrow 26 wheel")
  endif()
  if(NOT EXISTS ${GREBE_PYARROW_DIR}/include/arrow/api.h)
    message(FATAL_ERROR "Arrow C++ 26 was not found: run 'make setup', or set GREBE_PYARROW_DIR")
  endif()
  foreach(pair "core:libarrow" "parquet:libparquet" "compute:libarrow_compute" "s3:libarrow_s3")
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 target)
    list(GET pair 1 file)
    add_library(Arrow::${target} SHARED IMPORTED)
    set_target_properties(Arrow::${target} PROPERTIES
      IMPORTED_LOCATION ${GREBE_PYARROW_DIR}/${file}.so.2600
      IMPORTED_SONAME ${file}.so.2600
      INTERFACE_INCLUDE_DIRECTORIES ${GREBE_PYARROW_DIR}/include)
  endforeach()
  set_property(TARGET Arrow::parquet APPEND PROPERTY INTERFACE_LINK_LIBRARIES Arrow::core)
  list(APPEND CMAKE_BUILD_RPATH ${GREBE_PYARROW_DIR})
  list(APPEND CMAKE_INSTALL_RPATH ${GREBE_PYARROW_DIR})
endif()
