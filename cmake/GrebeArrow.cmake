# Finds Arrow C++ and Parquet C++ 26 and offers them as Arrow::core, Arrow::parquet and
# Arrow::compute. First the system's packages; where there are none, the pyarrow wheel (its headers
# and versioned libraries): GREBE_PYARROW_DIR, the project's .venv, or the one that python3 imports.
# Installed with the library too, so that its users find the same Arrow: see GrebeConfig.cmake.in.

if(TARGET Arrow::core)
  return()
endif()

find_package(Arrow 26 QUIET)
find_package(Parquet 26 QUIET)
if(Arrow_FOUND AND Parquet_FOUND)
  add_library(Arrow::core INTERFACE IMPORTED)
  target_link_libraries(Arrow::core INTERFACE Arrow::arrow_shared)
  add_library(Arrow::parquet INTERFACE IMPORTED)
  target_link_libraries(Arrow::parquet INTERFACE Parquet::parquet_shared)
  find_package(ArrowCompute 26 QUIET)
  add_library(Arrow::compute INTERFACE IMPORTED)
  if(ArrowCompute_FOUND)
    target_link_libraries(Arrow::compute INTERFACE ArrowCompute::arrow_compute_shared)
  endif()
  return()
endif()

if(NOT GREBE_PYARROW_DIR)
  file(GLOB _pyarrow ${CMAKE_CURRENT_LIST_DIR}/../.venv/lib/python3*/site-packages/pyarrow)
  if(NOT _pyarrow)
    execute_process(
      COMMAND python3 -c "import os, pyarrow; print(os.path.dirname(pyarrow.__file__))"
      OUTPUT_VARIABLE _pyarrow OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(_pyarrow)
    list(GET _pyarrow 0 _pyarrow)
    get_filename_component(_pyarrow ${_pyarrow} ABSOLUTE)
  endif()
  set(GREBE_PYARROW_DIR "${_pyarrow}" CACHE PATH "Folder of the pyarrow 26 wheel" FORCE)
endif()
if(NOT EXISTS ${GREBE_PYARROW_DIR}/include/arrow/api.h
   OR NOT EXISTS ${GREBE_PYARROW_DIR}/libarrow.so.2600)
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
set_property(TARGET Arrow::compute APPEND PROPERTY INTERFACE_LINK_LIBRARIES Arrow::core)
list(APPEND CMAKE_BUILD_RPATH ${GREBE_PYARROW_DIR})
list(APPEND CMAKE_INSTALL_RPATH ${GREBE_PYARROW_DIR})
